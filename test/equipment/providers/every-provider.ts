import { wholeChat, streamedChat } from '../chat-behaviour.ts'
import { geminiUsage, googleError, streamedGemini, wholeGemini } from '../gemini-behaviour.ts'
import { messagesErrorText, streamedMessage, wholeMessage } from '../messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../responses-behaviour.ts'
import { ACCOUNT, type BedrockAnswer, REGION, startBedrock } from './bedrock.ts'
import { type DoubleAnswer, type ReceivedByDouble, startDouble } from './double.ts'
import { startVertex } from './vertex.ts'

/** The response that all doubles give. */
export type Mood = 'answer' | 'refuse' | 'break off' | 'reset after the reason'

/** Text and tool call of every response, with ten prompt tokens and five output tokens. */
export const SAID = { text: 'Hello there.', calls: [{ id: 'c1', name: 'look', input: '{"at":1}' }] }
/** The message of every refusal. */
export const REFUSAL = 'that is too long'

/** Doubles of all providers, and a channel for each dialect that one of them speaks. */
export interface EveryProvider {
  /** Channels, each of which serves the model of its own name. */
  readonly channels: readonly (Record<string, unknown> & { readonly name: string })[]
  /** The last body that the upstream of a channel received. */
  lastBody(channel: string): string
  /** Sets what the doubles respond from now on. */
  become(mood: Mood): void
  close(): Promise<void>
}

const DIALECTS = {
  chat: { whole: wholeChat(SAID), streamed: streamedChat(SAID) },
  messages: {
    whole: wholeMessage([{ text: SAID.text }, ...SAID.calls]),
    streamed: streamedMessage([{ text: SAID.text }, ...SAID.calls]),
  },
  responses: { whole: wholeResponse(SAID), streamed: streamedResponse(SAID) },
  gemini: geminiAnswers(),
}
type Dialect = keyof typeof DIALECTS

function geminiAnswers() {
  const calls = SAID.calls.map(({ id, name, input }) => ({ id, name, args: input }))
  const content = { text: SAID.text, calls, usage: geminiUsage(10, 5) }
  return { whole: wholeGemini(content), streamed: streamedGemini(content) }
}

/** Models by the providers' names. */
const CLAUDE_ON_BEDROCK = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const DEPLOYMENT = 'my-deployment'
const KEY = 'key-0123456789abcdef'

/** Channels of each provider: the dialect, and the provider's name for the model. */
const SPOKEN = {
  plain: { chat: 'theirs', messages: 'theirs', responses: 'theirs', gemini: 'theirs' },
  azure: { chat: DEPLOYMENT, messages: DEPLOYMENT, responses: DEPLOYMENT },
  bedrock: { messages: CLAUDE_ON_BEDROCK, converse: 'eu.amazon.nova-lite-v1:0' },
  vertex: { chat: 'meta/llama-maas', gemini: 'gemini-2.5-pro', messages: 'claude-sonnet-4-5@20250929' },
} as const

/** Starts the doubles. */
export async function startEveryProvider(): Promise<EveryProvider> {
  let mood: Mood = 'answer'
  const plain = await startDouble((request) => answerOf(request, mood))
  const azure = await startDouble((request) => azureRefusal(request) ?? answerOf(request, mood))
  const bedrock = await startBedrock((_, operation) => bedrockAnswer(operation, mood))
  const vertex = await startVertex((request) => answerOf(request, mood))
  const doubles = { plain, azure, bedrock, vertex }
  const fields = {
    plain: { base_url: `${plain.url}/v1`, keys: [KEY] },
    azure: { provider: 'azure', base_url: azure.url, keys: [KEY] },
    bedrock: {
      provider: 'bedrock',
      region: REGION,
      base_url: bedrock.url,
      keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
    },
    vertex: {
      provider: 'vertex',
      location: 'europe-west4',
      base_url: vertex.url,
      keys: [vertex.serviceAccount],
    },
  }
  const channels = (Object.keys(SPOKEN) as (keyof typeof SPOKEN)[]).flatMap((provider) =>
    Object.entries(SPOKEN[provider]).map(([protocol, theirs]) => {
      const name = `${provider}-${protocol}`
      return { name, protocol, models: [name], model_mapping: { [name]: theirs }, ...fields[provider] }
    }),
  )
  return {
    channels,
    lastBody(channel) {
      const { received } = doubles[channel.split('-')[0] as keyof typeof doubles]
      return received.findLast(({ path }) => path !== '/token')?.body.toString() ?? ''
    },
    become: (next) => void (mood = next),
    async close() {
      await Promise.all(Object.values(doubles).map((double) => double.close()))
    },
  }
}

function azureRefusal({ headers, path, body }: ReceivedByDouble): DoubleAnswer | undefined {
  const isKnown = (headers['api-key'] ?? headers['x-api-key']) === KEY && headers.authorization === undefined
  if (!isKnown) return { status: 401, body: '{"error":{"code":"401","message":"Access denied"}}' }
  return /^\/(?:openai|anthropic)\/v1\//.test(path) && body.includes(DEPLOYMENT)
    ? undefined
    : { status: 404, body: '{"error":{"code":"404","message":"Resource not found"}}' }
}

function answerOf({ path, body }: ReceivedByDouble, mood: Mood): DoubleAnswer {
  const dialect = dialectOf(path)
  if (mood === 'refuse') return { status: 400, body: refusalIn(dialect) }
  const isStream = /:stream(?:Generate|Raw)/.test(path) || body.includes('"stream":true')
  if (!isStream) return { body: DIALECTS[dialect].whole.body ?? '' }
  const frames = DIALECTS[dialect].streamed.frames ?? []
  const resets = mood === 'reset after the reason'
  const sent = mood === 'break off' ? frames.slice(0, 3) : resets ? withoutTerminator(frames) : frames
  return { headers: { 'content-type': 'text/event-stream' }, body: sent.join(''), resets }
}

/** Frames without the last one, which only marks the end of the stream. */
function withoutTerminator(frames: readonly string[]): readonly string[] {
  return frames.filter((frame) => !/^data: \[DONE\]|^event: message_stop/.test(frame))
}

function dialectOf(path: string): Dialect {
  if (path.includes('enerateContent')) return 'gemini'
  if (path.includes('awPredict') || path.includes('/messages')) return 'messages'
  return path.includes('/responses') ? 'responses' : 'chat'
}

function refusalIn(dialect: Dialect): string {
  if (dialect === 'gemini') return googleError(400, 'INVALID_ARGUMENT', REFUSAL)
  if (dialect === 'messages') return messagesErrorText('invalid_request_error', REFUSAL)
  return JSON.stringify({
    error: { message: REFUSAL, type: 'invalid_request_error', param: null, code: null },
  })
}

function bedrockAnswer(operation: string, mood: Mood): BedrockAnswer {
  if (mood === 'refuse') return { error: { status: 400, name: 'ValidationException', message: REFUSAL } }
  const { whole, events } = operation.startsWith('converse') ? CONVERSED : INVOKED
  if (mood === 'answer') return { whole, events }
  if (mood === 'reset after the reason')
    return { whole, events: events.filter((event) => !isStop(event)), resets: true }
  return {
    whole,
    events: events.slice(0, 3),
    exception: { name: 'modelStreamErrorException', message: 'oops' },
  }
}

function isStop(event: object): boolean {
  return 'type' in event && event.type === 'message_stop'
}

const INVOKED = {
  whole: JSON.parse(String(DIALECTS.messages.whole.body)) as object,
  events: (DIALECTS.messages.streamed.frames ?? [])
    .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 'data: '.length)) as { type: string })
    .filter(({ type }) => type !== 'ping'),
}

const CONVERSE_USAGE = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
const CONVERSED = {
  whole: {
    output: {
      message: {
        role: 'assistant',
        content: [
          { text: SAID.text },
          ...SAID.calls.map(({ id, name, input }) => ({
            toolUse: { toolUseId: id, name, input: JSON.parse(input) },
          })),
        ],
      },
    },
    stopReason: 'tool_use',
    usage: CONVERSE_USAGE,
    metrics: { latencyMs: 1 },
  },
  events: [
    { messageStart: { role: 'assistant' } },
    { contentBlockDelta: { contentBlockIndex: 0, delta: { text: SAID.text.slice(0, 3) } } },
    { contentBlockDelta: { contentBlockIndex: 0, delta: { text: SAID.text.slice(3) } } },
    { contentBlockStop: { contentBlockIndex: 0 } },
    ...SAID.calls.flatMap(({ id, name, input }, index) => [
      {
        contentBlockStart: {
          contentBlockIndex: index + 1,
          start: { toolUse: { toolUseId: id, name } },
        },
      },
      { contentBlockDelta: { contentBlockIndex: index + 1, delta: { toolUse: { input } } } },
      { contentBlockStop: { contentBlockIndex: index + 1 } },
    ]),
    { messageStop: { stopReason: 'tool_use' } },
    { metadata: { usage: CONVERSE_USAGE, metrics: { latencyMs: 1 } } },
  ],
}
