import { type Fields } from './fields.ts'
import { jsonAskedFor } from './json-request.ts'
import type { Prompt } from './prompt.ts'
import { titleOf } from './title.ts'

const TITLE_MAKER = /\btitle generator\b|\b(?:generate|create|write|suggest|come up with)\b[^.\n]{0,60}\btitle\b/i
const FOR_CONVERSATION = /\btitle\b[^.\n]{0,60}\b(?:conversation|chat|thread|session|history)\b/i

/** The schema of a JSON answer: the one that the request states, or what its words ask for where no tool is offered. */
export function answerSchema({ jsonSchema, tools, instructions, lastUser }: Prompt): Fields | undefined {
  return jsonSchema ?? jsonAskedFor(lastUser) ?? (tools.length === 0 ? jsonAskedFor(instructions) : undefined)
}

/** The title that a client asks for beside a conversation; undefined where it does not. */
export function titleFor({ tools, instructions, lastUser, userTexts }: Prompt): string | undefined {
  if (tools.length > 0) return undefined
  if (TITLE_MAKER.test(instructions.slice(0, 2000))) return titleOf(lastUser)
  if (!TITLE_MAKER.test(lastUser) || !FOR_CONVERSATION.test(lastUser)) return undefined
  const earlier = userTexts.find((text) => !TITLE_MAKER.test(text))
  return titleOf(earlier ?? afterInstruction(lastUser))
}

/** The conversation that an instruction ends with. */
function afterInstruction(text: string): string {
  return /<(?:chat_history|conversation|session)>/i.test(text) ? text : (text.split('\n\n').at(-1) ?? '')
}
