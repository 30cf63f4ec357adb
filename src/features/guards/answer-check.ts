import { findToolCallsAndImages, type ToolCallsAndImages } from '@sluice/wire/tool-calls-and-images'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CheckTurns } from '../../call/check-turns.ts'
import type { CallGuards } from './call-guards.ts'
import { GuardBlock } from './active-guard.ts'
import { checkedAnswer } from './services/checked-answer.ts'
import type { CheckedText } from './services/service-checks.ts'

const NO_CALLS: ToolCallsAndImages = { calls: [], images: [] }

/** How a whole answer is checked. */
export interface AnswerCheck {
  readonly guards: CallGuards
  /** Divides the check into turns with other work. */
  readonly turns: CheckTurns
  /** Aborted when the result is no longer needed; if absent, services are asked until the client leaves. */
  readonly signal?: AbortSignal
}

/** The check of an answer that ends when the result is no longer needed. */
export function answerCheck(guards: CallGuards, signal: AbortSignal): AnswerCheck {
  return { guards, turns: guards.turnsUntil(() => signal.aborted), signal }
}

/** A text of an answer for which no protocol says more. */
export function outputText(text: string): CheckedText {
  return { text, place: 'output', isSigned: false, isJson: false }
}

/**
 * Checks the texts of a whole answer: first the guards' services, if there are any, then the guards that search texts.
 * Resolves to the texts to send. Rejects with `GuardBlock` or `CheckCancelled`.
 * @param scan The answer, in which services are shown calls and images, too.
 */
export async function checkAnswerTexts(
  check: AnswerCheck,
  texts: readonly CheckedText[],
  scan: ScannedObject,
): Promise<readonly string[]> {
  const served = await servedTexts(check, texts, scan)
  return screenedTexts(check, texts, served)
}

/** Has services check the texts of an answer, and the tool calls and images in `scan`. Rejects as `checkAnswerTexts` does. */
export async function servedTexts(
  { guards, signal }: AnswerCheck,
  texts: readonly CheckedText[],
  scan?: ScannedObject,
): Promise<readonly string[]> {
  const { services } = guards
  if (!services?.concerns('output', 'tool_arguments')) return texts.map(({ text }) => text)
  const found = scan ? findToolCallsAndImages(scan) : NO_CALLS
  return checkedAnswer(services, guards, { texts, ...found, side: 'response', ...(signal && { signal }) })
}

/** Checks texts of an answer, which services have left as `served`, with the guards that search texts. */
export async function screenedTexts(
  { guards, turns }: AnswerCheck,
  texts: readonly CheckedText[],
  served: readonly string[],
): Promise<readonly string[]> {
  const screened: string[] = []
  for (const [index, one] of texts.entries())
    screened.push(await guards.checkLongAnswer(served[index] ?? '', one, turns))
  return screened
}

/** Resolves to undefined if a guard blocks what is checked. */
export async function unlessBlocked<Result>(checking: Promise<Result>): Promise<Result | undefined> {
  try {
    return await checking
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}
