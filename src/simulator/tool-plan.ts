import { fields } from './fields.ts'
import { type Mention, type Mentions, mentionsIn, stem } from './mentions.ts'
import type { Tool } from './prompt.ts'
import { areFew, type Fit, fitOf, READING } from './tool-fit.ts'
import { needOf, wordsOfName } from './tool-needs.ts'

/** A call that the message asks for; `path` is the file or folder that it is about. */
export interface PlannedCall {
  readonly tool: Tool
  readonly path: string | undefined
}

/** The most calls that one message of the user leads to. */
export const MAX_CALLS = 2

const STRENGTH = ['its name', 'words of its name', 'its description'] as const

/**
 * The calls that a message asks for, in its order: of the tools that it names, else of those that do what
 * its words say. The same message and tools give the same plan, so that a later turn knows what an earlier
 * one has done.
 */
export function planOf(message: string, tools: readonly Tool[]): PlannedCall[] {
  const mentions = mentionsIn(message)
  const fits = tools.map((tool) => fitOf(tool, mentions, areFew(tools))).filter((fit) => fit !== undefined)
  const strongest = STRENGTH.find((by) => fits.some((fit) => fit.by === by))
  const chosen = bestPerPosition(fits.filter(({ by }) => by === strongest))
  const [only, another] = strongest === 'its description' ? chosen.slice(0, 1) : chosen
  if (!only) return readCalls(mentions, tools)
  if (another)
    return chosen.slice(0, MAX_CALLS).map(({ tool, at }) => ({ tool, path: pathFrom(mentions.paths, at) }))
  return callPerPath(only.tool, mentions.paths)
}

/** Where nothing says what to do with a file that is named, it is read. */
function readCalls(mentions: Mentions, tools: readonly Tool[]): PlannedCall[] {
  const reader = tools.find(({ name }) => isReader(wordsOfName(name).map(stem)))
  const files = mentions.paths.filter(({ text }) => !text.endsWith('/'))
  return reader && files.length > 0 ? callPerPath(reader, files) : []
}

function isReader(parts: readonly string[]): boolean {
  return (
    parts.some((part) => READING.named.has(part)) &&
    parts.every((part) => READING.named.has(part) || part === stem('file'))
  )
}

/** One call a path, where several are named and the tool takes one. */
function callPerPath(tool: Tool, paths: readonly Mention[]): PlannedCall[] {
  const unique = [...new Set(paths.map(({ text }) => text))]
  const members = Object.entries(fields(tool.schema.properties))
  const takesPath = members.some(([name, member]) => needOf(name, fields(member)) === 'path')
  if (unique.length === 0 || !takesPath) return [{ tool, path: unique[0] }]
  return unique.slice(0, MAX_CALLS).map((path) => ({ tool, path }))
}

/** The first path after a place, else the last before it. */
function pathFrom(paths: readonly Mention[], at: number): string | undefined {
  return (paths.find((path) => path.at > at) ?? paths.at(-1))?.text
}

/** Keeps, of the tools that the same word asks for, the one that suits it best. */
function bestPerPosition(fits: readonly Fit[]): Fit[] {
  const best = new Map<number, Fit>()
  for (const fit of fits) {
    const other = best.get(fit.at)
    if (!other || fit.share > other.share) best.set(fit.at, fit)
  }
  return [...best.values()].toSorted((a, b) => a.at - b.at)
}
