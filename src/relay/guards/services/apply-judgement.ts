import type { GuardAction } from '../../../domain/guard.ts'
import type { Pseudonyms } from '../../../redaction/pseudonyms.ts'
import type { PlacedMatch, TextJudgement } from './service.ts'

/** How matches are changed. */
interface Change {
  readonly action: GuardAction
  /** What redaction writes. */
  readonly with: string
  /** The kind of a match that has none. */
  readonly kind: string
  /** The tokens of the request; undefined for an answer. */
  readonly pseudonyms: Pseudonyms | undefined
}

const MAX_KIND = 64

/** A name as the kind of a match: in capitals. */
export function kindOf(name: string): string {
  return name
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .slice(0, MAX_KIND)
}

/** A text as it goes on by what a service has decided about it. */
export function applied(text: string, judgement: TextJudgement, change: Change): string {
  if ('spans' in judgement) return withSpans(text, merged(judgement.spans), change)
  const { text: next } = judgement
  if (change.action === 'redact' || next === text) return next
  const { start, end } = difference(text, next)
  // Nothing was taken away.
  return start === end ? next : withSpans(text, [{ start, end, kind: change.kind }], change)
}

/** The part of a text that another one changes, from the first to the last difference. */
export function difference(text: string, next: string): { readonly start: number; readonly end: number } {
  const shorter = Math.min(text.length, next.length)
  let start = 0
  while (start < shorter && text[start] === next[start]) start++
  // Surrogates stay together.
  if (isLowHalf(text, start) || isLowHalf(next, start)) start -= 1
  let same = 0
  while (same < shorter - start && text[text.length - 1 - same] === next[next.length - 1 - same]) same++
  if (isLowHalf(text, text.length - same) || isLowHalf(next, next.length - same)) same -= 1
  return { start: Math.max(0, start), end: text.length - Math.max(0, same) }
}

function isLowHalf(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00
}

/** Matches in order, those that overlap as one of the first one's kind. */
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
    next += text.slice(at, start) + written(text.slice(start, end), kindOf(kind), change)
    at = end
  }
  return next + text.slice(at)
}

function written(value: string, kind: string, { action, with: redacted, pseudonyms }: Change): string {
  if (action === 'redact') return redacted
  return pseudonyms ? pseudonyms.tokenFor(kind, value) : `[[${kind}]]`
}
