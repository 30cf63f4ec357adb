import { Option } from 'commander'
import type { Field, Fields, NamesWith } from '../domain/records/record.ts'

/** Options of the fields that the command line sets as they are. */
export function recordOptions(fields: Fields): Option[] {
  return optionsOf(fields).map(([name, [value, help]]) => new Option(`--${flagOf(name)} <${value}>`, help))
}

/** Fields that the options give. */
export function givenFields<const F extends Fields>(
  fields: F,
  options: object,
): { readonly [Name in NamesWith<F, 'option'>]?: string } {
  const given = options as Readonly<Record<string, unknown>>
  const values = optionsOf(fields).map(([name]) => [
    name,
    given[new Option(`--${flagOf(name)}`).attributeName()],
  ])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined))
}

function optionsOf(fields: Fields): (readonly [string, NonNullable<Field['option']>])[] {
  return Object.entries(fields).flatMap(([name, { option }]) => (option ? [[name, option] as const] : []))
}

function flagOf(name: string): string {
  return name.replaceAll('_', '-')
}
