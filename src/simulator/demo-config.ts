import { DEMO_MODELS } from './demo-models.ts'
import type { Simulator } from './start-simulator.ts'

/** URLs of the simulated upstreams. */
export type DemoUrls = Pick<Simulator, 'chatUrl' | 'messagesUrl' | 'responsesUrl' | 'geminiUrl' | 'rerankUrl'>

/**
 * Renders a gateway.yaml with a channel for each simulated upstream. Without users in it, the first start
 * creates the root user and its key, and prints them.
 */
export function demoYaml({ chatUrl, messagesUrl, responsesUrl, geminiUrl, rerankUrl }: DemoUrls): string {
  return `# The demo: one simulated upstream of each protocol.
groups:
  default: { ratio: 1 }
  vip: { ratio: 0.8, open: false }

models:
  demo-chat:
    vendor: simulator
    price: { input: 0.5, output: 2, cache_read: 0.05 }
  demo-reason:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125 }
  demo-claude:
    vendor: simulator
    price: { input: 3, output: 15 }
  demo-responses:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125 }
  demo-gemini:
    vendor: simulator
    price: { input: 1.25, output: 10, cache_read: 0.125 }
  demo-rerank:
    vendor: simulator
    price: { request: 0.002 }

channels:
  - name: demo-chat-upstream
    protocol: chat
    base_url: ${chatUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.chat.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-messages-upstream
    protocol: messages
    base_url: ${messagesUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.messages.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-responses-upstream
    protocol: responses
    base_url: ${responsesUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.responses.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-gemini-upstream
    protocol: gemini
    base_url: ${geminiUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.gemini.join(', ')} ]
    groups: [ default, vip ]
  - name: demo-rerank-upstream
    protocol: rerank
    base_url: ${rerankUrl}
    keys: [ simulated-key ]
    models: [ ${DEMO_MODELS.rerank.join(', ')} ]
    groups: [ default, vip ]
`
}
