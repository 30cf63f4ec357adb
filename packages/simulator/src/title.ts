import { asksForThing } from './asks-for-thing.ts'
import { COMMON_WORDS } from './topic.ts'

const MAX_TEXT = 20_000
const MAX_WORDS = 6
const MAX_LENGTH = 50
const TITLE_NAMED = /\btitle\b/gi
/**
 * Matches a verb whose object is the title. If words such as `with` follow, the text is not about a title.
 */
const VERBS = /\b(?:generate|create|write|suggest|come up with)\b(?!.{0,80}\b(?:with|and|that|has)\b)/i
/** Matches the tags around a conversation for which a title is wanted. */
const CONVERSATION = /<(?:chat_history|conversation|session)>/i

/** Whether a line of a message or a system prompt asks for a title. */
export function isTitleRequest(text: string): boolean {
  return /\btitle generator\b/i.test(text) || asksForThing(text, TITLE_NAMED, VERBS)
}

/** Returns a message without the lines that ask for a title; empty if nothing else is left. */
export function messageWithoutTitleRequest(message: string): string {
  const text = message.slice(0, MAX_TEXT)
  const tag = CONVERSATION.exec(text)
  const [inside = ''] = tag ? text.slice(tag.index + tag[0].length).split('</') : [text]
  const lines = inside.split('\n')
  return lines
    .filter((line) => /\p{L}/u.test(line) && !isTitleRequest(line))
    .join('\n')
    .trim()
}

/** Generates a title from the first words of a message, up to an "and", without quotation marks. */
export function titleOf(message: string): string {
  const [line = ''] = (messageWithoutTitleRequest(message) || message).split('\n')
  const [clause = ''] = line
    .slice(0, 400)
    .replaceAll(/["“”`<>]/g, '')
    .trim()
    .replace(/^(?:user|human): ?/i, '')
    .split(/[,;:!?] | and |\. /)
  const words = clause.split(/\s+/).slice(0, MAX_WORDS)
  while (words.length > 2 && COMMON_WORDS.has(words.at(-1)?.toLowerCase() ?? '')) words.pop()
  const title = words
    .join(' ')
    .slice(0, MAX_LENGTH)
    .replace(/[.,;:!?]{1,3}$/, '')
  return title === '' ? 'New conversation' : title.charAt(0).toUpperCase() + title.slice(1)
}
