// Clients of others talk to the assistant: `node front_ends.mjs CLIENT ADDRESS OPTIONS` prints what they have seen.
import process from 'node:process'

const [client, address, text] = process.argv.slice(2)
const options = JSON.parse(text)

/** Take turns as an AG-UI front-end does; what waits is answered with `options.payload`. */
async function agUi() {
  const { HttpAgent } = await import('@ag-ui/client')
  const agent = new HttpAgent({ url: `${address}/ag-ui`, threadId: options.thread, headers: options.headers })
  const events = []
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) })
  for (const content of options.messages) {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
    await agent.runAgent()
    while (agent.pendingInterrupts.length) {
      const entries = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: options.payload }))
      await agent.runAgent({ resume: entries })
    }
  }
  return { events, messages: agent.messages }
}

/** Take turns as a page with `useChat` does; approvals are answered with `options.payload`, and sent by themselves. */
async function vercel() {
  const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await import('ai')
  const state = {
    status: 'ready',
    error: undefined,
    messages: [],
    pushMessage: (message) => void state.messages.push(message),
    popMessage: () => void state.messages.pop(),
    replaceMessage: (index, message) => void (state.messages[index] = message),
    snapshot: (value) => structuredClone(value),
  }
  class Chat extends AbstractChat {}
  const data = []
  const finishes = []
  const chat = new Chat({
    id: options.thread,
    state,
    transport: new DefaultChatTransport({ api: `${address}/api/chat`, headers: options.headers }),
    onData: (part) => void data.push(part),
    onFinish: ({ finishReason, isAbort, isError }) => void finishes.push({ finishReason, isAbort, isError }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const waiting = () => state.messages.at(-1).parts.filter((part) => part.state === 'approval-requested')
  for (const message of options.messages) {
    await chat.sendMessage(typeof message === 'string' ? { text: message } : message)
    while (!state.error && waiting().length) {
      for (const { approval } of waiting()) await chat.addToolApprovalResponse({ id: approval.id, ...options.payload })
      do await new Promise((resolve) => setTimeout(resolve, 20))
      while (chat.status === 'submitted' || chat.status === 'streaming')
    }
  }
  return { messages: state.messages, data, finishes, error: state.error?.message }
}

/** Take a turn with OpenAI's client. */
async function openai() {
  const { default: OpenAI } = await import('openai')
  const user = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'unused', maxRetries: 0 })
  const [input] = options.messages
  const stream = await user.chat.completions.create({ model: 'habilis', stream: true, messages: [{ role: 'user', content: input }] })
  let said = ''
  for await (const chunk of stream) said += chunk.choices[0]?.delta?.content ?? ''
  const { id, output_text } = await user.responses.create({ model: 'habilis', input })
  const next = await user.responses.create({ model: 'habilis', input, previous_response_id: id })
  return { said, first: output_text, next: next.output_text }
}

const clients = { 'ag-ui': agUi, vercel, openai }
try {
  console.log(JSON.stringify(await clients[client]()))
} catch (error) {
  console.log(JSON.stringify({ failed: String(error?.message ?? error) }))
}
