import { asFields, asList } from './fields.ts'
import { type Mention, type Mentions, mentionsIn, stem, wordStemsOf } from './mentions.ts'
import { isPatchTool } from './patch.ts'
import type { Tool } from './prompt.ts'
import { READ_VERB, RUN_VERB, type ToolMatch, isShortToolList, matchTool } from './match-tool.ts'
import { argumentKindOf, wordsOfName } from './argument-kinds.ts'

/** A call that the message asks for; `path` is the file or folder that it works on. */
export interface PlannedCall {
  readonly tool: Tool
  readonly path: string | undefined
  /** What a general tool, such as a shell, is to do: show the file, or patch it. */
  readonly task?: 'show' | 'patch'
  /** Whether the arguments depend on the result of the previous call. */
  readonly waits?: true
}

/** Maximum number of calls per user message. */
export const MAX_CALLS = 2

/** Matches names of files that a shell cannot show as text. */
const NO_TEXT = /\.(?:png|jpe?g|gif|webp|pdf)$/i

const STRENGTH = ['its name', 'words of its name', 'its description'] as const

/**
 * Plans the calls that a message asks for, in order: with the tools that it names, otherwise with those that
 * fit its words. Equal messages give equal plans, so that a later turn knows which calls were made.
 * `shellPatches`: a shell accepts patches too.
 */
export function planToolCalls(message: string, tools: readonly Tool[], shellPatches = false): PlannedCall[] {
  const mentions = mentionsIn(message)
  const edits = editPlan(mentions, tools, shellPatches)
  const fits = tools
    .filter((tool) => !isPatchTool(tool))
    .map((tool) => matchTool(tool, mentions, isShortToolList(tools)))
    .filter((fit) => fit !== undefined)
  const strongest = STRENGTH.find((by) => fits.some((fit) => fit.by === by))
  const chosen = bestPerPosition(fits.filter(({ by }) => by === strongest))
  const [only, another] = strongest === 'its description' ? chosen.slice(0, 1) : chosen
  if (!only) return edits.length > 0 ? edits : readCalls(mentions, tools)
  if (another)
    return chosen.slice(0, MAX_CALLS).map(({ tool, at }) => ({ tool, path: pathFrom(mentions.paths, at) }))
  return callPerPath(only.tool, mentions.paths)
}

/** Plans calls that read the mentioned files, if the message asks for nothing else. */
function readCalls(mentions: Mentions, tools: readonly Tool[]): PlannedCall[] {
  const reader = tools.find(({ name }) => isReader(wordsOfName(name).map(stem)))
  const files = mentions.paths.filter(({ text }) => !text.endsWith('/'))
  if (files.length === 0) return []
  if (reader) return callPerPath(reader, files)
  const shell = tools.find(isShell)
  const texts = files.filter(({ text }) => !NO_TEXT.test(text))
  return shell ? distinctPaths(texts).map((path) => ({ tool: shell, path, task: 'show' })) : []
}

function isReader(parts: readonly string[]): boolean {
  return (
    parts.some((part) => READ_VERB.nameStems.has(part)) &&
    parts.every((part) => READ_VERB.nameStems.has(part) || part === stem('file'))
  )
}

/** Plans one call per path, if there are several paths and the tool takes only one. */
function callPerPath(tool: Tool, paths: readonly Mention[]): PlannedCall[] {
  const unique = distinctPaths(paths)
  const members = Object.entries(asFields(tool.schema.properties))
  const takesPath = members.some(([name, member]) => argumentKindOf(name, asFields(member)) === 'path')
  return unique.length === 0 || !takesPath
    ? [{ tool, path: unique[0] }]
    : unique.map((path) => ({ tool, path }))
}

/** Returns the different paths, at most as many as calls are allowed. */
function distinctPaths(paths: readonly Mention[]): string[] {
  return [...new Set(paths.map(({ text }) => text))].slice(0, MAX_CALLS)
}

/** Finds the first path after a position, or if there is none, the last path before it. */
function pathFrom(paths: readonly Mention[], at: number): string | undefined {
  return (paths.find((path) => path.at > at) ?? paths.at(-1))?.text
}

/** For each place in a message that asks for a tool, keeps the tool that fits best. */
function bestPerPosition(fits: readonly ToolMatch[]): ToolMatch[] {
  const best = new Map<number, ToolMatch>()
  for (const fit of fits) {
    const other = best.get(fit.at)
    if (!other || fit.share > other.share) best.set(fit.at, fit)
  }
  return [...best.values()].toSorted((a, b) => a.at - b.at)
}

const EDITING = new Set('write create save add edit replace change patch'.split(' ').map(stem))

/**
 * Plans the calls with which an agent without file tools changes a file: a patch, and before it a call that
 * reads the file if only a part is replaced. `shellPatches`: the agent's shell accepts patches too.
 */
function editPlan(mentions: Mentions, tools: readonly Tool[], shellPatches: boolean): PlannedCall[] {
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

/** Whether a verb that asks for a change precedes the quoted texts. */
function isEditRequest(mentions: Mentions): boolean {
  const first = mentions.quoted[0]
  return (
    first !== undefined && wordStemsOf(mentions).some(({ text, at }) => at < first.at && EDITING.has(text))
  )
}

/** Whether a tool runs a command line. */
function isShell({ name, schema }: Tool): boolean {
  const members = asFields(schema.properties)
  return (
    wordsOfName(name).some((part) => RUN_VERB.nameStems.has(stem(part))) &&
    asList(schema.required).some(
      (member) => argumentKindOf(String(member), asFields(members[String(member)])) === 'command',
    )
  )
}
