import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import { type ResponsesRequest, refersToItems } from '../../protocols/responses/index.ts'
import type { RelayedRequest } from '../dialects/dialect.ts'
import type { Referred } from './referred.ts'

/**
 * The part of a prompt that its request only names: tokens of the response that it continues, as they were
 * reported, and whether there are parts of which the gateway knows nothing. `scan` is the request with all
 * that the gateway keeps of what it refers to.
 */
export function namedPrompt(
  scan: ScannedObject,
  { namesPrompt }: Pick<ResponsesRequest, 'namesPrompt'>,
  { isPlain, continued }: Referred,
): Pick<RelayedRequest, 'contextTokens' | 'namesPrompt'> {
  const previous = continued?.kind === 'native' ? continued.response : undefined
  // A response that is made in the background is stored before its tokens are known.
  const isUnknown = previous && (previous.callId !== null || previous.tokens === 0)
  return {
    contextTokens: previous?.tokens ?? 0,
    namesPrompt: namesPrompt || isUnknown || (!isPlain && refersToItems(scan)),
  }
}
