import { answerTexts, repeatingSpans, type TextChange, textAt, withTexts } from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { refusedAnswer } from '@sluice/wire/refused-answer'
import { NO_USAGE } from '@sluice/wire/usage'
import type { Pseudonyms } from '../../redaction/pseudonyms.ts'
import type { WholeReply } from '../dialects/dialect.ts'
import { type CallGuards, GuardBlock } from './call-guards.ts'

/** A stored answer as it may be read, in the client's dialect. */
export function guardedAnswer(bytes: Buffer, guards: CallGuards): Buffer {
  const checked = checkedTexts(bytes, guards, false)
  const scan = scanned(bytes)
  if (!scan) return bytes
  return checked === undefined ? refusedAnswer(scan) : withChecked(scan, checked, guards, false)
}

/** Checks a whole answer, in the client's dialect, before it is charged. */
export function guardedReply(reply: WholeReply, guards: CallGuards, signsReasoning: boolean): WholeReply {
  const { facts, next } = reply
  if (next)
    return {
      ...reply,
      next: { ...next, reply: (bytes) => guardedReply(next.reply(bytes), guards, signsReasoning) },
    }
  if (!facts.valid) return reply
  const checked = checkedTexts(reply.preview?.() ?? reply.body(NO_USAGE), guards, signsReasoning)
  const form = (bytes: Buffer): Buffer => {
    const scan = scanned(bytes)
    if (!scan) return bytes
    return checked === undefined ? refusedAnswer(scan) : withChecked(scan, checked, guards, signsReasoning)
  }
  reply.keptForm = form
  return {
    ...reply,
    body: (charged) => form(reply.body(charged)),
    // What a guard has blocked must not be read later.
    keep: async (target, call, charged) => {
      if (checked !== undefined) await reply.keep?.(target, call, charged)
    },
  }
}

/** A whole answer that repeats texts of the request, with what was replaced there put back. */
export function restoredReply(reply: WholeReply, pseudonyms: Pseudonyms): WholeReply {
  if (pseudonyms.size === 0) return reply
  return { ...reply, body: (charged) => Buffer.from(pseudonyms.restoreJson(reply.body(charged).toString())) }
}

/** The texts of an answer as they may be sent, in order; undefined if a guard blocks. */
function checkedTexts(
  bytes: Buffer,
  guards: CallGuards,
  signsReasoning: boolean,
): readonly string[] | undefined {
  const scan = scanned(bytes)
  if (!scan) return []
  try {
    return answerTexts(scan, signsReasoning).map((found) => {
      const text = textAt(scan.bytes, found.from, found.to)
      return found.isJson ? guards.checkAnswerJson(text, found) : guards.checkAnswer(text, found)
    })
  } catch (error) {
    if (error instanceof GuardBlock) return undefined
    throw error
  }
}

function withChecked(
  scan: ScannedObject,
  checked: readonly string[],
  guards: CallGuards,
  signsReasoning: boolean,
): Buffer {
  const changes: TextChange[] = []
  for (const [index, { from, to }] of answerTexts(scan, signsReasoning).entries()) {
    const text = checked[index]
    if (text !== undefined && text !== textAt(scan.bytes, from, to))
      changes.push({ from, to, text: JSON.stringify(text) })
  }
  if (guards.changesAnswer)
    for (const [from, to, text] of repeatingSpans(scan)) changes.push({ from, to, text })
  return withTexts(
    scan.bytes,
    changes.toSorted((a, b) => a.from - b.from),
  )
}

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
