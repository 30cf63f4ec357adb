import { chatDialect } from '../relay/roads/chat.ts'
import type { KeyEndpoint } from './endpoint.ts'

/** `docs/api.md: Chat completions`. */
export const chatCompletions: KeyEndpoint = {
  method: 'POST',
  path: '/v1/chat/completions',
  area: 'relay',
  access: 'api-key',
  handle: (visit, caller, relay) => relay.call(chatDialect, visit, caller),
}
