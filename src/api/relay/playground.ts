import type { KeyEndpoint } from '../endpoint.ts'
import { chatCompletions } from './chat-completions.ts'
import { gemini } from './gemini.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'

/** Endpoints of conversations, each with the path prefix that the playground replaces. */
const CONVERSATIONS: readonly (readonly [KeyEndpoint, string])[] = [
  [chatCompletions, '/v1/'],
  [messages, '/v1/'],
  [responses, '/v1/'],
  ...gemini
    .filter(({ path }) => /^\/v1beta\/.*:(?:g|streamG)enerateContent$/.test(path))
    .map((endpoint) => [endpoint, '/v1beta/'] as const),
]

/** Conversations in every dialect, with a key that a signed-in account names. `docs/api.md: Playground`. */
export const playground: readonly KeyEndpoint[] = CONVERSATIONS.map(([endpoint, prefix]) => ({
  ...endpoint,
  path: endpoint.path.replace(prefix, '/api/playground/'),
  access: 'keyed-account',
  summary: `${endpoint.summary}, by a key of the account's own`,
}))
