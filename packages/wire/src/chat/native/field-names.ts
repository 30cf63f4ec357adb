import { knownNames, requestNames } from '../../request-names.ts'
import { COMPLETION_FIELD_CHECKS } from '../completions/request.ts'
import { CHAT_REQUEST } from '../shape.ts'
import { CHAT_FIELD_CHECKS } from './request.ts'

const OTHERS = {
  members: { Tool: 'model max_uses' },
  below: {
    'Message.audio': knownNames('id data transcript'),
    'Request.cache_control': knownNames('type ttl'),
    'Request.stream_options': knownNames('include_usage include_obfuscation'),
    'Request.thinking': knownNames('type budget_tokens'),
  },
}

/** The names of the fields of chat completions requests. */
export const chatFieldNames = requestNames(CHAT_FIELD_CHECKS.keys(), CHAT_REQUEST, OTHERS)

/** The names of the fields of completions requests, which may be converted to chat requests. */
export const completionFieldNames = requestNames(
  [...CHAT_FIELD_CHECKS.keys(), ...COMPLETION_FIELD_CHECKS.keys()],
  CHAT_REQUEST,
  OTHERS,
)
