import { Switch, TagsInput, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { FieldType } from '../../src/domain/records/field-types.ts'

/** Type of a field of a record, as far as forms need it. */
export type InputType = Pick<FieldType, 'json' | 'bounds' | 'isNullable'>

/** A value as it is typed: numbers and durations are texts, and null is an empty one. */
export type TypedValue = string | boolean | string[]

/** A value of JSON as it is typed. */
export function typedValue(value: unknown): TypedValue {
  if (typeof value === 'boolean' || Array.isArray(value)) return value
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** What is typed, as a value of JSON. */
export function jsonValueOf({ json, isNullable }: InputType, typed: TypedValue): unknown {
  if (typeof typed !== 'string') return typed
  const text = typed.trim()
  if (text === '' && isNullable) return null
  return json === 'integer' ? Number(text) || 0 : text
}

/** The input of a field of a record that is a text, a whole number, a flag or a list of texts. */
export function RecordInput<Form extends object>({
  type: { json, bounds },
  label,
  name,
  form,
}: {
  readonly type: InputType
  readonly label: string
  readonly name: string
  readonly form: UseFormReturnType<Form>
}) {
  if (json === 'boolean') return <Switch label={label} {...form.getInputProps(name, { type: 'checkbox' })} />
  if (json === 'array') return <TagsInput label={label} {...form.getInputProps(name)} />
  if (json === 'string') return <TextInput label={label} {...form.getInputProps(name)} />
  const { minimum, maximum } = bounds
  return (
    <TextInput
      type="number"
      label={label}
      step={1}
      {...{ min: minimum, max: maximum }}
      {...form.getInputProps(name)}
    />
  )
}
