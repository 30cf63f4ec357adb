import {
  countedModel,
  MESSAGES_PROMPT_RULES,
  MESSAGES_REQUEST,
  messagesFieldNames,
} from '@sluice/wire/messages'
import { promptText } from '@sluice/wire/prompt-text'
import type { CountTokensEndpoint } from '../count-tokens.ts'
import { versionHeaders } from './version-headers.ts'

/** The endpoint `POST /v1/messages/count_tokens`, which counts the tokens of a request. */
export const messagesCountTokens: CountTokensEndpoint = {
  protocol: 'messages',
  names: messagesFieldNames,
  shape: MESSAGES_REQUEST,
  path: () => '/messages/count_tokens',
  model: countedModel,
  upstreamHeaders: versionHeaders,
  countable: (scan) => promptText(scan, MESSAGES_PROMPT_RULES, ''),
  countedIn: 'input_tokens',
  response: (tokens) => ({ input_tokens: tokens }),
}
