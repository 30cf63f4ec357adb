import { type Command, Option } from 'commander'
import type { Field, Fields, NamesWith, ValueOf } from '../domain/records/record.ts'
import { wholeNumber } from './options.ts'

/** Adds the options of the fields that the command line sets as they are. An empty default is not shown. */
export function addRecordOptions(command: Command, fields: Fields): Command {
  for (const [name, { type, default: value, option }] of optionsOf(fields)) {
    const added = new Option(`--${flagOf(name)} <${option[0]}>`, option[1])
    if (type.json === 'integer') added.argParser(wholeNumber)
    command.addOption(value === '' ? added : added.default(value))
  }
  return command
}

/** Fields that the options give. */
export function givenFields<const F extends Fields>(
  fields: F,
  options: object,
): { readonly [Name in NamesWith<F, 'option'>]?: ValueOf<F[Name]> } {
  const given = options as Readonly<Record<string, unknown>>
  const values = optionsOf(fields).map(([name]) => [
    name,
    given[new Option(`--${flagOf(name)}`).attributeName()],
  ])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as never
}

function optionsOf(fields: Fields): [string, Field & Required<Pick<Field, 'option'>>][] {
  return Object.entries(fields).filter(([, { option }]) => option) as ReturnType<typeof optionsOf>
}

function flagOf(name: string): string {
  return name.replaceAll('_', '-')
}
