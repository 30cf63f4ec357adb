import { type Command, Option } from 'commander'
import type { Fields, NamesWith, ValueOf } from '../domain/records/record.ts'
import { wholeNumber } from './options.ts'

/** Adds the options for those fields that the command line sets unchanged. An empty default is not shown. */
export function addRecordOptions(command: Command, fields: Fields): Command {
  for (const [, option] of optionsOf(fields)) command.addOption(option)
  return command
}

/** Returns the fields whose options are given. */
export function givenFields<const F extends Fields>(
  fields: F,
  options: object,
): { readonly [Name in NamesWith<F, 'option'>]?: ValueOf<F[Name]> } {
  const given = options as Readonly<Record<string, unknown>>
  const values = optionsOf(fields).map(([name, option]) => [name, given[option.attributeName()]])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as never
}

function optionsOf(fields: Fields): [string, Option][] {
  return Object.entries(fields).flatMap(([name, { type, default: value, option }]) => {
    if (!option) return []
    const made = new Option(`--${name.replaceAll('_', '-')} <${option[0]}>`, option[1])
    if (type.json === 'integer') made.argParser(wholeNumber)
    return [[name, value === '' ? made : made.default(value)]]
  })
}
