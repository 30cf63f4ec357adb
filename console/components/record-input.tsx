import { Switch, TagsInput, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { FieldType } from '../../src/domain/records/field-types.ts'

/** The properties of a field's type that determine its input in a form. */
export type InputFieldType = Pick<FieldType, 'json' | 'bounds' | 'isNullable'>

/** A value as a form keeps it: numbers and durations are texts, and null is an empty text. */
export type FormValue = string | boolean | string[]

/** Converts a JSON value to the value of an input. */
export function formValueOf(value: unknown): FormValue {
  if (typeof value === 'boolean' || Array.isArray(value)) return value
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Converts the value of an input to a JSON value. */
export function jsonValueOf({ json, isNullable }: InputFieldType, typed: FormValue): unknown {
  if (typeof typed !== 'string') return typed
  const text = typed.trim()
  if (text === '' && isNullable) return null
  return json === 'integer' ? Number(text) || 0 : text
}

/** The input for a field that is a text, a whole number, a flag or a list of texts. */
export function RecordInput<Form extends object>({
  type: { json, bounds },
  label,
  name,
  form,
}: {
  readonly type: InputFieldType
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
