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
>

/**
 * Renders a gateway.yaml with a channel for each simulated upstream. Without users in it, the first start
 * creates the root user and its key, and prints them.
 */
export function demoYaml(urls: DemoUrls): string {
  const { chatUrl, messagesUrl, responsesUrl, geminiUrl, bedrockUrl } = urls
  const { rerankUrl, embeddingsUrl, mediaUrl } = urls
  const [invoked, conversed] = DEMO_MODELS.bedrock
  return `# The demo: one simulated upstream of each protocol, one of embeddings, and one of images and audio.
groups:
  default: { ratio: 1 }
  vip: { ratio: 0.8, open: false }

models:
  demo-chat:
    vendor: simulator
    price: { input: 0.5, output: 2, cache_read: 0.05, service: { flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-reason:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-claude:
    vendor: simulator
    price: { input: 3, output: 15, service: { fast: 2 }, regions: { us: 1.1 } }
  demo-responses:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { flex: 0.5, fast: 2, ultrafast: 6 } }
  demo-gemini:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { flex: 0.5, fast: 1.8 } }
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

channels:
  - name: demo-chat-upstream
    protocol: chat
    base_url: ${chatUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.chat.join(', ')} ]
    groups: [ default, vip ]
    allow: [ service_tier ]
  - name: demo-messages-upstream
    protocol: messages
    base_url: ${messagesUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.messages.join(', ')} ]
    groups: [ default, vip ]
    allow: [ service_tier, speed, inference_geo ]
  - name: demo-responses-upstream
    protocol: responses
    base_url: ${responsesUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.responses.join(', ')} ]
    groups: [ default, vip ]
    allow: [ service_tier ]
  - name: demo-gemini-upstream
    protocol: gemini
    base_url: ${geminiUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.gemini.join(', ')} ]
    groups: [ default, vip ]
    allow: [ service_tier ]
  - name: demo-bedrock-claude-upstream
    provider: bedrock
    region: us-east-1
    protocol: messages
    base_url: ${bedrockUrl}
    keys: [ simulated-key-of-bedrock ]
    models: [ ${invoked} ]
    groups: [ default, vip ]
    allow: [ service_tier ]
  - name: demo-bedrock-nova-upstream
    provider: bedrock
    region: us-east-1
    protocol: converse
    base_url: ${bedrockUrl}
    keys: [ simulated-key-of-bedrock ]
    models: [ ${conversed} ]
    groups: [ default, vip ]
    allow: [ service_tier ]
  - name: demo-rerank-upstream
    protocol: rerank
    base_url: ${rerankUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.rerank.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-embeddings-upstream
    protocol: chat
    base_url: ${embeddingsUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.embeddings.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-media-upstream
    protocol: chat
    base_url: ${mediaUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.media.join(', ')} ]
    groups: [ default, vip ]
`
}
