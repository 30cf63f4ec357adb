import { WireError } from '../../wire-error.ts'
import { ArrivedMedia } from '../../received-media.ts'
import { foldParts } from '../../fold-reply.ts'
import { asRecord, textOr } from '../../json/record.ts'
import type { Choice, Logprobs, Reply, ReplyEvent } from '../../reply.ts'
import { isError } from '../../reply-facts.ts'
import type { Fields } from '../../field.ts'
import { noteArrived } from '../answer.ts'
import { CITED_SEARCH, citesPage } from '../cited-pages.ts'
import { parseAnswer } from '../object-arguments.ts'
import { ReplyParts } from '../reply-parts.ts'
import { stopOf } from '../stop-reasons.ts'
import { usageOf } from '../usage.ts'

/**
 * Decodes a whole reply with as many choices as were requested. Throws `upstream_error` if it is not a reply.
 */
export function decodeReply(bytes: Buffer, choices = 1): Reply {
  const reply = parseAnswer(bytes.toString())
  const choice = firstChoice(reply?.['choices'])
  if (!reply || !choice || isError(reply['error']))
    throw new WireError('upstream_error', 'The upstream sent no response that could be understood.')
  const id = textOr(reply['id'])
  const arrived = new ArrivedMedia()
  const found = Array.from({ length: choices - 1 }, (_, i) => choiceAt(reply['choices'], i + 1))
  const others = found
    .filter((other) => other !== undefined)
    .map((other, i) => read(other, `${id}_${i + 1}`, arrived))
  return {
    id,
    model: textOr(reply['model']),
    ...read(choice, id, arrived),
    usage: usageOf(reply),
    ...(others.length > 0 && { others }),
    ...(citesPage(choice['message']) && { tools: [CITED_SEARCH] }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

function read(choice: Fields, id: string, arrived: ArrivedMedia): Choice {
  noteArrived(asRecord(choice['message']), arrived)
  const events: ReplyEvent[] = []
  const parts = new ReplyParts((event) => events.push(event))
  parts.setReplyId(id)
  parts.read(asRecord(choice['message']) ?? {}, logprobsOf(choice))
  parts.end()
  return { parts: foldParts(events), stop: stopOf(finishReasonOf(choice), parts) }
}

/** Finds the first choice: index 0, or without an index. */
export function firstChoice(choices: unknown): Fields | undefined {
  return choiceAt(choices, 0)
}

/** Finds the choice with this index; a choice without one has index 0. */
export function choiceAt(choices: unknown, number: number): Fields | undefined {
  if (!Array.isArray(choices)) return undefined
  for (const value of choices) {
    const choice = asRecord(value)
    if (choice && (choice['index'] ?? 0) === number) return choice
  }
  return undefined
}

/** Returns a choice's finish reason; undefined if it has none. */
export function finishReasonOf(choice: Fields): string | undefined {
  return textOr(choice['finish_reason']) || undefined
}

/** Returns the log probabilities of the tokens of a choice's content; undefined if it has none. */
export function logprobsOf(choice: Fields): Logprobs | undefined {
  const tokens = asRecord(choice['logprobs'])?.['content']
  return Array.isArray(tokens) && tokens.length > 0 ? tokens : undefined
}
