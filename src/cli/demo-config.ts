import { DEMO_MODELS } from '@sluice/simulator'
import type { Simulator } from '@sluice/simulator'

/** URLs of the simulated upstreams. */
export type DemoUrls = Pick<
  Simulator,
  | 'chatUrl'
  | 'messagesUrl'
  | 'responsesUrl'
  | 'geminiUrl'
  | 'bedrockUrl'
  | 'rerankUrl'
  | 'embeddingsUrl'
  | 'mediaUrl'
> &
  Partial<Pick<Simulator, 'mcpUrls'>>

/**
 * Renders a gateway.yaml with a channel for each simulated upstream. Without users in it, the first start
 * creates the root user and its key, and prints them.
 */
export function demoYaml(urls: DemoUrls): string {
  const [invoked, conversed] = DEMO_MODELS.bedrock
  const { chat, messages, responses, gemini, rerank, embeddings, media } = DEMO_MODELS
  const allow = ['service_tier']
  const bedrock = { url: urls.bedrockUrl, allow, isBedrock: true }
  const channels = [
    channelYaml('chat', { protocol: 'chat', url: urls.chatUrl, models: chat, allow, canBatch: true }),
    channelYaml('messages', {
      protocol: 'messages',
      url: urls.messagesUrl,
      models: messages,
      allow: ['service_tier', 'speed', 'inference_geo'],
      canBatch: true,
    }),
    channelYaml('responses', {
      protocol: 'responses',
      url: urls.responsesUrl,
      models: responses,
      allow,
      hasSockets: true,
      canBatch: true,
    }),
    channelYaml('gemini', {
      protocol: 'gemini',
      url: urls.geminiUrl,
      models: gemini,
      allow,
      canBatch: true,
    }),
    channelYaml('bedrock-claude', { ...bedrock, protocol: 'messages', models: [invoked] }),
    channelYaml('bedrock-nova', { ...bedrock, protocol: 'converse', models: [conversed] }),
    channelYaml('rerank', { protocol: 'rerank', url: urls.rerankUrl, models: rerank }),
    channelYaml('embeddings', { protocol: 'chat', url: urls.embeddingsUrl, models: embeddings }),
    channelYaml('media', { protocol: 'chat', url: urls.mediaUrl, models: media }),
  ]
  return `# The demo: one simulated upstream of each protocol, one of embeddings, and one of images and audio.
groups:
  default: { ratio: 1 }
  vip: { ratio: 0.8, open: false }

models:
  demo-chat:
    vendor: simulator
    price: { input: 0.5, output: 2, cache_read: 0.05, service: { batch: 0.5, flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-reason:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { batch: 0.5, flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-claude:
    vendor: simulator
    price: { input: 3, output: 15, service: { batch: 0.5, fast: 2 }, regions: { us: 1.1 } }
  demo-responses:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { batch: 0.5, flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-gemini:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { batch: 0.5, flex: 0.5, fast: 1.8 } }
  ${invoked}:
    vendor: simulator
    price: { input: 3, output: 15 }
  ${conversed}:
    vendor: simulator
    price: { input: 0.06, output: 0.24 }
  demo-rerank:
    vendor: simulator
    price: { search_unit: 0.002 }
  demo-embed:
    vendor: simulator
    price: { input: 0.02, output: 0 }
  demo-image:
    vendor: simulator
    price: { input: 5, image_input: 10, output: 10, image_output: 40, image: 0.042 }
  demo-speech:
    vendor: simulator
    price: { characters: 15 }
  demo-transcribe:
    vendor: simulator
    price: { second: 0.0001 }

${mcpYaml(urls.mcpUrls)}channels:
${channels.join('\n')}
`
}

/** Searches have a price, other tools are free. */
function mcpYaml(urls: DemoUrls['mcpUrls'] = new Map()): string {
  if (urls.size === 0) return ''
  const servers = [...urls].map(
    ([name, url]) =>
      `    - { name: ${name}, url: "${url}"${name === 'web' ? ', price: { tools: { search: 0.01 } }' : ''} }\n`,
  )
  return `mcp:\n  servers:\n${servers.join('')}\n`
}

/** A channel in the gateway.yaml of `sluice demo`. */
interface DemoChannel {
  readonly protocol: string
  readonly url: string
  readonly models: readonly string[]
  /** Names of request fields that the channel forwards, although channels remove them by default. */
  readonly allow?: readonly string[]
  readonly isBedrock?: boolean
  /** Whether turns of WebSockets are sent over WebSockets. */
  readonly hasSockets?: boolean
  /** Whether lines of batches are sent to the batch API of the upstream. */
  readonly canBatch?: boolean
}

function channelYaml(
  name: string,
  { protocol, url, models, allow, isBedrock, hasSockets, canBatch }: DemoChannel,
): string {
  return [
    `  - name: demo-${name}-upstream`,
    ...(isBedrock ? ['    provider: bedrock', '    region: us-east-1'] : []),
    `    protocol: ${protocol}`,
    `    base_url: ${url}`,
    `    keys: [ ${isBedrock ? 'simulated-key-of-bedrock' : 'simulated-key'} ]`,
    `    models: [ ${models.join(', ')} ]`,
    '    groups: [ default, vip ]',
    ...(hasSockets ? ['    websocket: true'] : []),
    ...(canBatch ? ['    batches: true'] : []),
    ...(allow ? [`    allow: [ ${allow.join(', ')} ]`] : []),
  ].join('\n')
}
