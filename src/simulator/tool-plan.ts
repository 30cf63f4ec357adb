import { fields } from './fields.ts'
import { type Mention, type Mentions, mentionsIn, stem } from './mentions.ts'
import type { Tool } from './prompt.ts'
import { areFew, type Fit, fitOf, READING } from './tool-fit.ts'
import { needOf, wordsOfName } from './tool-needs.ts'

/** Call that the message asks for; `path` is its file or folder. */
export interface PlannedCall {
  readonly tool: Tool
  readonly path: string | undefined
}

/** Most calls per user message. */
export const MAX_CALLS = 2

const STRENGTH = ['its name', 'words of its name', 'its description'] as const

/**
 * Plans the calls that a message asks for, in its order: of the tools that it names, else of those that fit
 * its words. Deterministic, so that a later turn knows the earlier calls.
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

/** Reads the files that are mentioned, if nothing else is asked for. */
function readCalls(mentions: Mentions, tools: readonly Tool[]): PlannedCall[] {
  const reader = tools.find(({ name }) => isReader(wordsOfName(name).map(stem)))
  const files = mentions.paths.filter(({ text }) => !text.endsWith('/'))
  return reader && files.length > 0 ? callPerPath(reader, files) : []
}

function isReader(parts: readonly string[]): boolean {
  return (
    parts.some((part) => READING.nameStems.has(part)) &&
    parts.every((part) => READING.nameStems.has(part) || part === stem('file'))
  )
}

/** Creates one call per path, if there are several and the tool takes one. */
function callPerPath(tool: Tool, paths: readonly Mention[]): PlannedCall[] {
  const unique = [...new Set(paths.map(({ text }) => text))]
  const members = Object.entries(fields(tool.schema.properties))
  const takesPath = members.some(([name, member]) => needOf(name, fields(member)) === 'path')
  if (unique.length === 0 || !takesPath) return [{ tool, path: unique[0] }]
  return unique.slice(0, MAX_CALLS).map((path) => ({ tool, path }))
}

/** Finds the first path after a position, else the last before it. */
function pathFrom(paths: readonly Mention[], at: number): string | undefined {
  return (paths.find((path) => path.at > at) ?? paths.at(-1))?.text
}

/** Keeps the best fit among the tools that the same word asks for. */
function bestPerPosition(fits: readonly Fit[]): Fit[] {
  const best = new Map<number, Fit>()
  for (const fit of fits) {
    const other = best.get(fit.at)
    if (!other || fit.share > other.share) best.set(fit.at, fit)
  }
  return [...best.values()].toSorted((a, b) => a.at - b.at)
}
