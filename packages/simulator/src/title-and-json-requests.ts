import { asksForThing } from './asks-for-thing.ts'
import type { Fields } from './fields.ts'
import { requestedJsonSchema } from './json-request.ts'
import type { Prompt } from './prompt.ts'
import { isTitleRequest, messageWithoutTitleRequest, titleOf } from './title.ts'

const CONVERSATION = /\b(?:conversation|chat|thread|session|history)\b/gi

/**
 * Finds the schema of a JSON reply: the one that the request states or, without tools, the one that its text
 * asks for.
 */
export function replySchema({ jsonSchema, tools, instructions, lastUser }: Prompt): Fields | undefined {
  return (
    jsonSchema ??
    requestedJsonSchema(lastUser) ??
    (tools.length === 0 ? requestedJsonSchema(instructions) : undefined)
  )
}

/** Generates a title, if the request asks for the title of a conversation; otherwise undefined. */
export function requestedTitle({ tools, instructions, lastUser, userTexts }: Prompt): string | undefined {
  if (tools.length > 0) return undefined
  const bySystem = isTitleRequest(instructions.slice(0, 2000))
  if (!bySystem && !(isTitleRequest(lastUser) && asksForThing(lastUser, CONVERSATION, /\btitle\b/i)))
    return undefined
  return titleOf(
    messageWithoutTitleRequest(lastUser) ||
      (userTexts.map(messageWithoutTitleRequest).find((text) => text !== '') ?? ''),
  )
}
