import { posix, win32 } from 'node:path'
import { type Fields, asList, asString } from './fields.ts'
import { type Mentions, mentionsIn, stem } from './mentions.ts'
import { isPatchTool, patchCommand, writePatch } from './patch.ts'
import type { Prompt } from './prompt.ts'
import { prose } from './prose.ts'
import type { Random } from './random.ts'
import { valueMatchingSchema } from './schema-value.ts'
import { titleOf } from './title.ts'
import { argumentKindOf, wordsOfName } from './argument-kinds.ts'
import type { PlannedCall } from './plan-tool-calls.ts'

/**
 * Creates the arguments of a call from the user's message: all required fields, and optional ones that the
 * message mentions. They satisfy the schema of the tool.
 */
export function argumentsOf(call: PlannedCall, prompt: Prompt, random: Random): unknown {
  const { tool, path } = call
  const { lastUser, workingDirectory } = prompt
  const mentions = mentionsIn(lastUser)
  const quoted = mentions.quoted.map(({ text }) => text)
  const source = { mentions, unused: [...quoted], path, workingDirectory, message: lastUser, random }
  const stems = new Set(mentions.words.map(({ text }) => stem(text.toLowerCase())))
  const isMentioned = (word: string): boolean => word.length > 2 && !VAGUE.has(word) && stems.has(stem(word))
  return valueMatchingSchema({ type: 'object', ...tool.schema }, lastUser, random, {
    text: (name, schema) => {
      const need = argumentKindOf(name, schema)
      const done = isPatchTool(tool) || need === 'command' ? taskText(call, prompt, mentions) : undefined
      if (done !== undefined) return done
      const given = need === 'path' || need === 'directory' ? undefined : namedValue(name, lastUser)
      return given ?? textFor(need, schema, source)
    },
    mentions: (name, schema) =>
      (argumentKindOf(name, schema) === 'path' && quoted.length > 0 && path !== undefined) ||
      wordsOfName(name).some(isMentioned) ||
      asList(schema.enum).some((value) => stems.has(stem(String(value).toLowerCase()))),
  })
}

/**
 * Writes the command or patch for a general tool, such as a shell, that works on the file; undefined for
 * other calls.
 */
function taskText({ tool, path, task }: PlannedCall, prompt: Prompt, mentions: Mentions): string | undefined {
  if (task === undefined || path === undefined) return undefined
  if (task === 'show') return `cat ${shellWord(path)}`
  const quoted = mentions.quoted.map(({ text }) => text)
  const patch = writePatch(path, quoted, prompt.results.join('\n'))
  return isPatchTool(tool) ? patch : patchCommand(patch)
}

function shellWord(text: string): string {
  return /^[\w./@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Words in field names that are too common to show that a message mentions the field. */
const VAGUE = new Set(['file', 'name', 'text', 'type', 'path', 'code', 'tool', 'run', 'content', 'message'])

interface Source {
  readonly mentions: Mentions
  /** Quoted texts of the message that no argument has used yet. */
  readonly unused: string[]
  readonly path: string | undefined
  readonly workingDirectory: string | undefined
  readonly message: string
  readonly random: Random
}

function textFor(
  need: ReturnType<typeof argumentKindOf>,
  schema: Fields,
  source: Source,
): string | undefined {
  const { mentions, unused, path, workingDirectory, message } = source
  const [first, second] = mentions.quoted.map(({ text }) => text)
  switch (need) {
    case 'path':
      return path === undefined ? (workingDirectory ?? '.') : resolvedPath(path, schema, workingDirectory)
    case 'directory':
      return path?.endsWith('/') ? resolvedPath(path, schema, workingDirectory) : (workingDirectory ?? '.')
    case 'url':
      return mentions.urls[0]?.text ?? 'https://example.com/'
    case 'command':
      return mentions.command ?? 'pwd'
    case 'old':
      return first
    case 'new':
      return second
    case 'content':
      return first ?? contentIn(message) ?? prose(message, source.random)
    case 'pattern':
      return first ?? mentions.globs[0]?.text ?? path
    case 'task':
      return message.slice(0, 2000)
    case 'title':
      return titleOf(message)
    case 'identifier':
      return first ?? mentions.identifiers[0]?.text
    case 'structure':
    case 'other':
      return unused.shift() ?? first
  }
}

/**
 * Returns a path in the form that the tool expects: absolute, unless the tool asks for relative paths or the
 * folder is unknown.
 */
function resolvedPath(path: string, schema: Fields, folder: string | undefined): string {
  const description = asString(schema.description)
  if (folder === undefined || path.startsWith('~')) return path
  if (/relative/i.test(description) && !/absolute/i.test(description)) return path
  const system = /^[A-Za-z]:/.test(folder) ? win32 : posix
  return system.isAbsolute(path) ? path : system.join(folder, path)
}

/** Finds the text without quotation marks that a message asks to write. */
function contentIn(message: string): string | undefined {
  return /\b(?:containing|saying|with the (?:text|contents?|words?|line))[: ] ?([^\n]{1,2000})/i
    .exec(message)?.[1]
    ?.trim()
}

/** Finds the value for a name, as in `city: Oslo`. */
function namedValue(name: string, message: string): string | undefined {
  const place = message.toLowerCase().indexOf(`${name.toLowerCase()}:`)
  if (name === '' || place < 0 || /\w/.test(message.charAt(place - 1))) return undefined
  const value = /^ ?["'`]?([^\n,;"'`]{1,200})/.exec(message.slice(place + name.length + 1))?.[1]
  return value?.trim().replace(/[.!?]$/, '')
}
