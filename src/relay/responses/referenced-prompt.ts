import type { StoredResponse } from '../../domain/stored-response.ts'
import type { ResponsesRequest } from '@sluice/wire/responses'
import type { Referred } from './item-references.ts'
import type { ParsedRequest } from '../request-stages.ts'

const NONE: readonly StoredResponse[] = []

/**
 * The part of a prompt that its request only refers to: the reported tokens of the responses that it
 * continues or whose items it uses, and whether there are parts of unknown size. Together, items count at
 * most as much as a prompt can have: the model's context, or the largest of these responses.
 */
export function namedPrompt(
  { namesPrompt }: Pick<ResponsesRequest, 'namesPrompt'>,
  { continued, items }: Referred,
  modelContext: number,
): Pick<ParsedRequest, 'contextTokens' | 'namesPrompt'> {
  const previous = continued?.kind === 'native' ? continued.response : undefined
  const others = items?.responses.filter(({ id }) => id !== previous?.id) ?? NONE
  const tokens = others.map((response) => response.tokens)
  const ofItems = Math.min(
    tokens.reduce((sum, each) => sum + each, 0),
    Math.max(modelContext, ...tokens),
  )
  const known = previous ? [previous, ...others] : others
  return {
    contextTokens: (previous?.tokens ?? 0) + ofItems,
    namesPrompt: namesPrompt || items?.hasUnknown === true || known.some(isUnreported),
  }
}

// A background response is stored before its tokens are known; other responses may report none.
function isUnreported({ callId, tokens }: StoredResponse): boolean {
  return callId !== null || tokens === 0
}
