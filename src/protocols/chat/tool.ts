import type { Dropped } from '../codec.ts'
import type { Tool } from '../conversation.ts'
import { cacheControl, cacheOf } from './cache-control.ts'
import { leaveOut } from './dropped-fields.ts'
import { type Fields, fieldsAt, flagAt, present, textAt } from './field.ts'

/** `tools`: the functions. Tools of other kinds are left out and named; one without a type is a function to some clients. */
export function decodeTools(tools: readonly unknown[], dropped: Dropped): Tool[] {
  return tools.flatMap((value, index) => {
    const path = `tools[${index}]`
    const tool = fieldsAt(value, path)
    const type = present(tool['type']) ?? 'function'
    if (type === 'function') return decodeFunction(tool, path)
    leaveOut(dropped, textAt(type, `${path}.type`) === 'custom' ? 'tools.custom' : 'tools.unknown')
    return []
  })
}

function decodeFunction(tool: Fields, path: string): Tool {
  const at = `${path}.function`
  const definition = fieldsAt(tool['function'], at)
  const description = present(definition['description'])
  const schema = present(definition['parameters'])
  const strict = present(definition['strict'])
  return {
    name: textAt(definition['name'], `${at}.name`),
    description: description === undefined ? undefined : textAt(description, `${at}.description`),
    schema: schema === undefined ? undefined : fieldsAt(schema, `${at}.parameters`),
    strict: strict === undefined ? undefined : flagAt(strict, `${at}.strict`),
    ...cacheOf(tool, path),
  }
}

/** A tool in chat's words; JSON leaves out what is undefined. */
export function encodeTool({ name, description, schema, strict, cache }: Tool): unknown {
  return {
    type: 'function',
    function: { name, description, parameters: schema, strict },
    ...cacheControl(cache),
  }
}
