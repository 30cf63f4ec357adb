import type { Conversation, Tool, ToolChoice } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { fieldsAt, listAt, textAt, enumAt } from '../field.ts'

const WORDS = [
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
] as const

const KINDS: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map(WORDS.map(([kind, word]) => [word, kind]))
const NAMES = Object.fromEntries(WORDS) as {
  readonly auto: string
  readonly any: string
  readonly none: string
}

const MODES: ReadonlyMap<string, 'auto' | 'any'> = new Map([
  ['auto', 'auto'],
  ['required', 'any'],
])

/** Tools that may be called, and the constraint on calls. */
type Offer = Pick<Conversation, 'tools' | 'toolChoice'>

/**
 * Decodes `tool_choice`. `allowed_tools` keeps only the tools that it names. Throws `invalid_request` for a
 * tool that is not offered, and for a forced tool that is neither a function nor a custom tool.
 */
export function decodeToolChoice(value: unknown, tools: readonly Tool[]): Offer {
  if (value === undefined) return { tools, toolChoice: undefined }
  if (typeof value === 'string') return { tools, toolChoice: { kind: enumAt(KINDS, value, 'tool_choice') } }
  const choice = fieldsAt(value, 'tool_choice')
  const type = textAt(choice['type'], 'tool_choice.type')
  if (type === 'allowed_tools') return decodeAllowed(choice['allowed_tools'], tools)
  if (type !== 'function' && type !== 'custom')
    refuse(
      'tool_choice.type',
      `'function', 'custom' or 'allowed_tools'`,
      'a type that cannot be passed on to this model',
    )
  const chosen = fieldsAt(choice[type], `tool_choice.${type}`)
  return { tools, toolChoice: { kind: 'tool', name: textAt(chosen['name'], `tool_choice.${type}.name`) } }
}

/** Decodes `allowed_tools`. Tools of other kinds were already dropped, and their names are ignored. */
function decodeAllowed(value: unknown, tools: readonly Tool[]): Offer {
  const path = 'tool_choice.allowed_tools'
  const { mode, tools: named } = fieldsAt(value, path)
  const kind = enumAt(MODES, mode, `${path}.mode`)
  const names = new Set<string>()
  for (const [i, entry] of listAt(named, `${path}.tools`).entries()) {
    const at = `${path}.tools[${i}]`
    const tool = fieldsAt(entry, at)
    const type = textAt(tool['type'], `${at}.type`)
    if (type !== 'function' && type !== 'custom') continue
    const name = textAt(fieldsAt(tool[type], `${at}.${type}`)['name'], `${at}.${type}.name`)
    if (!tools.some((offered) => offered.name === name))
      refuse(`${at}.${type}.name`, `the name of a tool in 'tools'`, 'another name')
    names.add(name)
  }
  return { tools: tools.filter(({ name }) => names.has(name)), toolChoice: { kind } }
}

/** Encodes the choice. */
export function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === 'tool') return { type: 'function', function: { name: choice.name } }
  return NAMES[choice.kind]
}
