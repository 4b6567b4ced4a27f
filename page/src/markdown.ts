/** Untrusted text as safe HTML. */

import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import { Marked } from 'marked';

hljs.registerLanguage('python', python);
hljs.registerLanguage('json', json);

const marked = new Marked({
  gfm: true,
  renderer: {
    code({ text, lang }) {
      return `<pre><code>${highlight(text, lang)}</code></pre>`;
    },
  },
});

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    node.setAttribute('rel', 'noopener noreferrer nofollow');
    node.setAttribute('target', '_blank');
  } else if (node.tagName === 'IMG' && !node.hasAttribute('alt')) {
    node.setAttribute('alt', '');
  }
});

/** Code with marks for its colours; other text escaped. */
export function highlight(code: string, language = 'python'): string {
  if (hljs.getLanguage(language)) return hljs.highlight(code, { language, ignoreIllegals: true }).value;
  return code.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Markdown as HTML. Images of other sites would tell them who reads: only those of the text itself are shown. */
export function render(source: string): string {
  return DOMPurify.sanitize(marked.parse(source, { async: false }), {
    FORBID_TAGS: ['style', 'form', 'input', 'button', 'iframe', 'object', 'embed', 'video', 'audio', 'svg', 'math'],
    FORBID_ATTR: ['style', 'srcset', 'id', 'name'],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp);)/i,
  });
}
