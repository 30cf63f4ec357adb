import type { Fields } from './fields.ts'
import { jsonAskedFor } from './json-request.ts'
import type { Prompt } from './prompt.ts'
import { subjectOf, TITLE_ASKED, titleOf } from './title.ts'

const FOR_CONVERSATION = /\btitle\b[^.\n]{0,60}\b(?:conversation|chat|thread|session|history)\b/i

/** The schema of a JSON answer: the one that the request states, or what its words ask for where no tool is offered. */
export function answerSchema({ jsonSchema, tools, instructions, lastUser }: Prompt): Fields | undefined {
  return jsonSchema ?? jsonAskedFor(lastUser) ?? (tools.length === 0 ? jsonAskedFor(instructions) : undefined)
}

/** The title that a client asks for beside a conversation; undefined where it does not. */
export function titleFor({ tools, instructions, lastUser, userTexts }: Prompt): string | undefined {
  if (tools.length > 0) return undefined
  const bySystem = TITLE_ASKED.test(instructions.slice(0, 2000))
  if (!bySystem && !(TITLE_ASKED.test(lastUser) && FOR_CONVERSATION.test(lastUser))) return undefined
  return titleOf(subjectOf(lastUser) || (userTexts.map(subjectOf).find((text) => text !== '') ?? ''))
}
