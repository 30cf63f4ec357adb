import { ArrivedMedia } from '../received-media.ts'
import { noteArrived } from './answer.ts'
import { generatedText, textMessage } from './generated-text.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { CITED_SEARCH, citesPage } from './cited-pages.ts'
import { usageOf } from './usage.ts'

/**
 * Reads the facts of a whole reply; never throws. The reply is parsed completely, because JSON.parse is
 * faster than a search for the members that are needed.
 */
export function usageOfReply(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const choices = reply['choices']
  const error = isError(reply['error'])
  return {
    valid: Array.isArray(choices) && !error,
    usage: usageOf(reply),
    ...(citesPageIn(choices) && { tools: [CITED_SEARCH] }),
    error,
    text: () => textOf(choices),
    arrived: () => arrivedIn(choices),
  }
}

function textOf(choices: unknown): string {
  if (!Array.isArray(choices)) return ''
  return choices
    .flatMap((value) => {
      const choice = asRecord(value)
      return generatedText(choice?.['message'] ?? textMessage(choice))
    })
    .join('\n')
}

function arrivedIn(choices: unknown): ArrivedMedia {
  const arrived = new ArrivedMedia()
  if (Array.isArray(choices))
    for (const choice of choices) noteArrived(asRecord(asRecord(choice)?.['message']), arrived)
  return arrived
}

function citesPageIn(choices: unknown): boolean {
  return Array.isArray(choices) && choices.some((choice) => citesPage(asRecord(choice)?.['message']))
}
