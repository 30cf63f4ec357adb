import type { Dropped } from '../codec.ts'
import type { ToolCallPart, ToolForm, ToolResultPart } from '../conversation.ts'
import { type Fields, fieldsAt, listAt, present, textAt } from '../field.ts'
import { inputOrEmpty } from '../tool-input.ts'
import { decodeContent } from './decode-content.ts'
import { customArguments } from '../custom-tool.ts'
import type { ToolNames } from './tool-names.ts'

/** Reader of the items of calls and of their outputs. */
export interface CallReader {
  readonly names: ToolNames
  readonly dropped: Dropped
}

type Item = Fields

/** A call by the type of its item; `textOf` is the very text of a member. */
export function readCall(
  type: string,
  item: Item,
  path: string,
  { names, textOf }: CallReader & { readonly textOf: (member: string) => string | undefined },
): ToolCallPart | undefined {
  const part = (form: ToolForm, input: string): ToolCallPart => ({
    kind: 'tool-call',
    id: callId(item, path),
    name: names.nameOf(form),
    input,
  })
  switch (type) {
    case 'function_call':
      return part(named('function', item, path), inputOrEmpty(optionalText(item, 'arguments', path)))
    case 'custom_tool_call':
      return part(named('custom', item, path), customArguments(textAt(item['input'], `${path}.input`)))
    case 'local_shell_call':
    case 'shell_call':
      fieldsAt(item['action'], `${path}.action`)
      return part(typed(type), withoutMember(item['action'], 'type', textOf('action')))
    case 'apply_patch_call':
      fieldsAt(item['operation'], `${path}.operation`)
      return part(typed(type), textOf('operation') ?? '{}')
    case 'tool_search_call':
      return part(typed(type), textOf('arguments') ?? '{}')
    default:
      return undefined
  }
}

/** The output of a call by the type of its item. */
export function readOutput(
  type: string,
  item: Item,
  path: string,
  { dropped }: CallReader,
): ToolResultPart | undefined {
  const result = (parts: ToolResultPart['parts'], id = callId(item, path)): ToolResultPart => ({
    kind: 'tool-result',
    callId: id,
    parts,
    isError: item['status'] === 'failed',
  })
  switch (type) {
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'apply_patch_call_output':
      return result(decodeContent(item['output'], `${path}.output`, dropped))
    case 'local_shell_call_output':
      // Its `id` is the call's.
      return result(
        decodeContent(item['output'], `${path}.output`, dropped),
        textAt(item['call_id'] ?? item['id'], `${path}.id`),
      )
    case 'shell_call_output':
      return result(textParts(shellOutput(item['output'], `${path}.output`)))
    case 'tool_search_output':
      return result(textParts(foundTools(item['tools'], `${path}.tools`)))
    default:
      return undefined
  }
}

/** The form of the tool that a call's item is of. */
function named(type: 'function' | 'custom', item: Item, path: string): ToolForm {
  const namespace = present(item['namespace'])
  return {
    type,
    name: textAt(item['name'], `${path}.name`),
    ...(namespace !== undefined && { namespace: textAt(namespace, `${path}.namespace`) }),
  }
}

function typed(itemType: `${Exclude<ToolForm['type'], 'function' | 'custom'>}_call`): ToolForm {
  const type = itemType.slice(0, -'_call'.length) as ToolForm['type']
  return { type, name: type }
}

function callId(item: Item, path: string): string {
  return textAt(item['call_id'], `${path}.call_id`)
}

/** An action without its type, which is always the same. */
function withoutMember(value: unknown, member: string, text: string | undefined): string {
  const fields = value as Readonly<Record<string, unknown>>
  if (!Object.hasOwn(fields, member)) return text ?? '{}'
  const { [member]: _, ...rest } = fields
  return JSON.stringify(rest)
}

/** Renders the output of each command as a shell shows it. */
function shellOutput(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  return listAt(value, path)
    .map((entry, index) => {
      const { stdout, stderr, outcome } = fieldsAt(entry, `${path}[${index}]`)
      const { type, exit_code: code } = fieldsAt(present(outcome) ?? {}, `${path}[${index}].outcome`)
      const end = type === 'timeout' ? 'timed out' : typeof code === 'number' ? `exit code ${code}` : ''
      return [stdout, stderr, end && `(${end})`]
        .filter((text) => typeof text === 'string' && text !== '')
        .join('\n')
    })
    .join('\n')
}

function foundTools(value: unknown, path: string): string {
  const names = listAt(present(value) ?? [], path).map(
    (tool, index) => fieldsAt(tool, `${path}[${index}]`)['name'],
  )
  return `Found tools: ${names.filter((name) => typeof name === 'string').join(', ') || 'none'}`
}

function textParts(text: string): ToolResultPart['parts'] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function optionalText(item: Item, key: string, path: string): string {
  const value = present(item[key])
  return value === undefined ? '' : textAt(value, `${path}.${key}`)
}
