import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../src/habilis/server/assistant/page',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page may load nothing but files of the server
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: '[name].js', chunkFileNames: '[name].js', assetFileNames: '[name][extname]' },
    },
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8800' } },
});
