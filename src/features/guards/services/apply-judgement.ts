import type { Pseudonyms } from '@sluice/screen/pseudonyms'
import type { GuardAction } from '../../../domain/guard.ts'
import type { PlacedMatch, TextJudgement } from './service.ts'

/** How the matches that a guard's service reports are replaced in a text. */
interface Change {
  readonly action: GuardAction
  /** Text that the action `redact` writes in place of a match. */
  readonly with: string
  /** Kind of value that is assumed for a match without a kind. */
  readonly kind: string
  /** Creates placeholders for the values of a request; undefined for an answer. */
  readonly pseudonyms: Pseudonyms | undefined
}

const MAX_KIND = 64

/** Converts a name to the kind of a match, for instance `E_MAIL`. */
export function matchKindOf(name: string): string {
  return name
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .slice(0, MAX_KIND)
}

/** Returns the text to send on, with the changes that a service's judgement requires. */
export function applyJudgement(text: string, judgement: TextJudgement, change: Change): string {
  if ('spans' in judgement) return withSpans(text, merged(judgement.spans), change)
  const { text: next } = judgement
  if (change.action === 'redact' || next === text) return next
  const { start, end } = changedRange(text, next)
  // The service has only added text, so there is no match to replace.
  return start === end ? next : withSpans(text, [{ start, end, kind: change.kind }], change)
}

/** The range of `text` that differs in `next`, from the first to the last difference. */
export function changedRange(text: string, next: string): { readonly start: number; readonly end: number } {
  const shorter = Math.min(text.length, next.length)
  let start = 0
  while (start < shorter && text[start] === next[start]) start++
  // A surrogate pair must not be split.
  if (isLowHalf(text, start) || isLowHalf(next, start)) start -= 1
  let same = 0
  while (same < shorter - start && text[text.length - 1 - same] === next[next.length - 1 - same]) same++
  if (isLowHalf(text, text.length - same) || isLowHalf(next, next.length - same)) same -= 1
  return { start: Math.max(0, start), end: text.length - Math.max(0, same) }
}

function isLowHalf(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00
}

/** Merges overlapping matches; the result has the kind of the first one. Expects matches in order. */
function merged(spans: readonly PlacedMatch[]): readonly PlacedMatch[] {
  const result: PlacedMatch[] = []
  for (const span of spans) {
    const last = result.at(-1)
    if (last && span.start < last.end)
      result[result.length - 1] = { ...last, end: Math.max(last.end, span.end) }
    else result.push(span)
  }
  return result
}

function withSpans(text: string, spans: readonly PlacedMatch[], change: Change): string {
  let next = ''
  let at = 0
  for (const { start, end, kind } of spans) {
    next += text.slice(at, start) + written(text.slice(start, end), matchKindOf(kind), change)
    at = end
  }
  return next + text.slice(at)
}

function written(value: string, kind: string, { action, with: redacted, pseudonyms }: Change): string {
  if (action === 'redact') return redacted
  return pseudonyms ? pseudonyms.tokenFor(kind, value) : `[[${kind}]]`
}
