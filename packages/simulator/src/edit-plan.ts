import { asFields, asList } from './fields.ts'
import { type Mentions, stem, stemsOf } from './mentions.ts'
import { isPatchTool } from './patch.ts'
import type { Tool } from './prompt.ts'
import { RUN_VERB } from './tool-fit.ts'
import { needOf, wordsOfName } from './tool-needs.ts'
import type { PlannedCall } from './tool-plan.ts'

const EDITING = new Set('write create save add edit replace change patch'.split(' ').map(stem))

/**
 * Plans the calls by which an agent without file tools changes a file: a patch, preceded by a read of the
 * file if only a part is replaced. `shellPatches` means that the agent's shell accepts patches too.
 */
export function editPlan(mentions: Mentions, tools: readonly Tool[], shellPatches: boolean): PlannedCall[] {
  const path = mentions.paths.find(({ text }) => !text.endsWith('/'))?.text
  const shell = tools.find(isShell)
  const editor = tools.find(isPatchTool) ?? (shellPatches ? shell : undefined)
  if (!editor || path === undefined || !isEditRequest(mentions)) return []
  const patch: PlannedCall = { tool: editor, path, task: 'patch' }
  if (mentions.quoted.length < 2 || !shell) return [patch]
  return [
    { tool: shell, path, task: 'show' },
    { ...patch, waits: true },
  ]
}

/** Whether one of the verbs precedes the quoted texts that are to be written. */
function isEditRequest(mentions: Mentions): boolean {
  const first = mentions.quoted[0]
  return first !== undefined && stemsOf(mentions).some(({ text, at }) => at < first.at && EDITING.has(text))
}

/** Whether a tool runs a command line. */
export function isShell({ name, schema }: Tool): boolean {
  const members = asFields(schema.properties)
  return (
    wordsOfName(name).some((part) => RUN_VERB.nameStems.has(stem(part))) &&
    asList(schema.required).some(
      (member) => needOf(String(member), asFields(members[String(member)])) === 'command',
    )
  )
}
