import type { KeyEndpoint } from './endpoint.ts'

/** `docs/api.md: Messages`. */
export const messages: KeyEndpoint = {
  method: 'POST',
  path: '/v1/messages',
  area: 'messages',
  door: 'raw',
  access: 'api-key',
  keyIn: 'x-api-key',
  handle: (visit, caller, relay) => relay.call('messages', visit, caller),
}
