import type { KeyEndpoint } from './endpoint.ts'

/** `docs/api.md: Chat completions`. */
export const chatCompletions: KeyEndpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  area: 'relay',
  door: 'raw',
  access: 'api-key',
  keyIn: 'bearer',
  handle: (visit, caller, relay) => relay.call('chat', visit, caller),
}
