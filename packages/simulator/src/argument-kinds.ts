import { type Fields, asFields, asList, asString } from './fields.ts'
import type { Mentions } from './mentions.ts'
import type { Tool } from './prompt.ts'

/** The kind of an argument; it determines where its value comes from. */
export type ArgumentKind =
  | 'path'
  | 'directory'
  | 'url'
  | 'command'
  | 'old'
  | 'new'
  | 'content'
  | 'pattern'
  | 'task'
  | 'title'
  /** An id or another given name, which cannot be guessed. */
  | 'identifier'
  /** An array or an object. */
  | 'structure'
  | 'other'

const BY_WORD: readonly (readonly [ArgumentKind, RegExp])[] = [
  ['old', /^(?:old|search_?string|find)$/],
  ['new', /^(?:new|replacement)$/],
  ['url', /^(?:url|uri|link|href)$/],
  ['command', /^(?:command|cmd|script|cmdline)$/],
  ['directory', /^(?:dir|directory|folder|cwd|workdir|workspace)$/],
  ['path', /^(?:path|file|filename|filepath|pathname|notebook)$/],
  ['content', /^(?:content|contents|body)$/],
  ['pattern', /^(?:pattern|query|regex|regexp|keyword|keywords|glob)$/],
  ['task', /^(?:prompt|task|question|instruction|instructions|message|input|request)$/],
  ['title', /^(?:title|description|subject|summary|reason|label)$/],
  ['identifier', /^(?:id|ids|type|skill|uuid|token)$/],
]

/** Derives the kind of an argument from its name and schema. */
export function argumentKindOf(name: string, schema: Fields): ArgumentKind {
  if (['array', 'object'].includes(asString(schema.type))) return 'structure'
  if (!takesText(schema)) return 'other'
  const parts = wordsOfName(name)
  const last = parts.at(-1) ?? ''
  if (last === 'id' || last === 'type') return 'identifier'
  return BY_WORD.find(([, word]) => parts.some((part) => word.test(part)))?.[0] ?? 'other'
}

function takesText({ type, enum: values, const: constant }: Fields): boolean {
  if (values !== undefined || constant !== undefined) return false
  return type === undefined || type === 'string' || asList(type).includes('string')
}

/** Splits a name into lower-case words, without the server in `mcp__server__name`. */
export function wordsOfName(name: string): string[] {
  return name
    .replace(/^mcp__\w{1,100}?__/, '')
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== '' && word !== 'get')
}

/**
 * Whether the message mentions every required argument that cannot be guessed. If it is clear that the tool
 * is meant, harmless arguments may be guessed.
 */
export function mentionsRequiredArguments({ schema }: Tool, mentions: Mentions, isClear: boolean): boolean {
  const members = asFields(schema.properties)
  return asList(schema.required).every((name) => {
    switch (argumentKindOf(asString(name), asFields(members[asString(name)]))) {
      case 'path':
        return mentions.paths.length > 0
      case 'url':
        return mentions.urls.length > 0
      case 'command':
        return mentions.command !== undefined
      case 'old':
        return mentions.quoted.length > 1
      case 'pattern':
        return isClear || [mentions.quoted, mentions.globs, mentions.paths].some(({ length }) => length > 0)
      case 'identifier':
        return isClear || mentions.quoted.length > 0 || mentions.identifiers.length > 0
      case 'structure':
        return isClear
      case 'directory':
      case 'new':
      case 'content':
      case 'task':
      case 'title':
      case 'other':
        return true
    }
  })
}
