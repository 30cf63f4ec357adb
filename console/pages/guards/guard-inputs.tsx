import { Checkbox, Group, Select, Switch, TagsInput, Textarea, TextInput } from '@mantine/core'
import { GUARD_ACTIONS, GUARD_FAILURES, GUARD_MODES, GUARD_PLACES } from '../../../src/domain/guard.ts'
import { FormSection } from '../../components/form-section.tsx'
import { useGroups } from '../../components/use-groups.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { type GuardForm, GUARD_SCOPES } from './guard-form.ts'
import {
  fieldsOfKind,
  isDecidedByService,
  initialValues,
  MATCH_KINDS,
  type MatchField,
  OTHER_KIND,
  type MatchFormValues,
} from './match-forms.ts'

/** Separators in a pasted list of names. */
const SEPARATORS = [',', '\n']

/** The fields of a guard: what it looks for, where, for which calls, and what it does. */
export function GuardInputs({ form, isNew }: { readonly form: GuardForm; readonly isNew: boolean }) {
  const { guards: t } = useTexts()
  const { do: action, kind } = form.values
  return (
    <>
      <FormSection title={t.guard}>
        <TextInput
          label={t.name}
          description={isNew ? t.nameHint : t.nameFixed}
          readOnly={!isNew}
          spellCheck={false}
          data-autofocus={isNew || undefined}
          {...form.getInputProps('name')}
        />
        <Select
          label={t.do}
          description={t.actionHints[action]}
          allowDeselect={false}
          data={GUARD_ACTIONS.map((value) => ({ value, label: t.actions[value] }))}
          {...form.getInputProps('do')}
        />
        {action === 'redact' && <TextInput label={t.with} {...form.getInputProps('with')} />}
        <Select
          label={t.mode}
          description={t.modeHints[form.values.mode]}
          allowDeselect={false}
          data={GUARD_MODES.map((value) => ({ value, label: t.modes[value] }))}
          {...form.getInputProps('mode')}
        />
        <Checkbox.Group label={t.where} {...form.getInputProps('where')}>
          <Group gap="md" mt={4}>
            {GUARD_PLACES.map((place) => (
              <Checkbox key={place} value={place} label={t.places[place]} />
            ))}
          </Group>
        </Checkbox.Group>
      </FormSection>
      <FormSection title={t.match} text={t.matchHint}>
        <MatchInputs form={form} />
      </FormSection>
      <FormSection title={t.scopes} text={t.scopesHint}>
        <ScopeInputs form={form} />
      </FormSection>
      {isDecidedByService(kind) && (
        <FormSection title={t.service} text={t.serviceHint}>
          <TextInput label={t.timeout} {...form.getInputProps('timeout')} />
          <Select
            label={t.onFailure}
            allowDeselect={false}
            data={GUARD_FAILURES.map((value) => ({ value, label: t.failures[value] }))}
            {...form.getInputProps('on_failure')}
          />
          <Switch label={t.charge} {...form.getInputProps('charge', { type: 'checkbox' })} />
          <TextInput
            type="number"
            min={0}
            label={t.mostDelay}
            description={t.mostDelayHint}
            {...form.getInputProps('most_delay')}
          />
        </FormSection>
      )}
    </>
  )
}

function MatchInputs({ form }: { readonly form: GuardForm }) {
  const { guards: t } = useTexts()
  const { kind } = form.values
  return (
    <>
      <Select
        label={t.kind}
        allowDeselect={false}
        data={[...MATCH_KINDS, OTHER_KIND].map((value) => ({ value, label: t.kinds[value] }))}
        value={kind}
        onChange={(chosen) => {
          const next = chosen as MatchFormValues['kind']
          form.setValues({ kind: next, values: initialValues(next), json: next === OTHER_KIND ? '{}' : '' })
        }}
      />
      {kind === OTHER_KIND ? (
        <Textarea
          label={t.json}
          description={t.jsonHint}
          autosize
          minRows={4}
          maxRows={16}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          spellCheck={false}
          {...form.getInputProps('json')}
        />
      ) : (
        fieldsOfKind(kind).map((field, index) => (
          <MatchInput key={field.name} field={field} form={form} isFirst={index === 0} />
        ))
      )}
    </>
  )
}

/**
 * The input for one field of a match (what a guard looks for). Errors of the whole match are shown at the
 * first field.
 */
function MatchInput({
  field: { name, input, choices = [] },
  form,
  isFirst,
}: {
  readonly field: MatchField
  readonly form: GuardForm
  readonly isFirst: boolean
}) {
  const { guards: t } = useTexts()
  const labels: Readonly<Record<string, string>> = t.matchFields
  const hints: Readonly<Record<string, string>> = t.matchHints
  const names: Readonly<Record<string, string>> = t.pii
  const common = {
    label: labels[name] ?? name,
    description: hints[name],
    error: isFirst && form.errors['values'],
  }
  const value = form.values.values[name] ?? ''
  const set = (next: string | string[]): void => {
    form.setFieldValue('values', { ...form.values.values, [name]: next })
    form.clearFieldError('values')
  }
  if (input === 'choices')
    return (
      <Checkbox.Group {...common} value={Array.isArray(value) ? value : []} onChange={set}>
        <Group gap="md" mt={4}>
          {choices.map((choice) => (
            <Checkbox key={choice} value={choice} label={names[choice] ?? choice} />
          ))}
        </Group>
      </Checkbox.Group>
    )
  if (input === 'number' || input === 'text')
    return (
      <TextInput
        {...common}
        inputMode={input === 'number' ? 'decimal' : 'text'}
        spellCheck={false}
        autoComplete="off"
        value={String(value)}
        onChange={({ currentTarget }) => set(currentTarget.value)}
      />
    )
  return (
    <Textarea
      {...common}
      autosize
      minRows={2}
      maxRows={12}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      spellCheck={false}
      value={String(value)}
      onChange={({ currentTarget }) => set(currentTarget.value)}
    />
  )
}

function ScopeInputs({ form }: { readonly form: GuardForm }) {
  const { guards: t } = useTexts()
  const groups = useGroups(form.values.groups)
  return (
    <>
      {GUARD_SCOPES.map((scope) => (
        <TagsInput
          key={scope}
          label={t.scopeNames[scope]}
          placeholder={form.values[scope].length === 0 ? t.all : ''}
          splitChars={SEPARATORS}
          spellCheck={false}
          {...form.getInputProps(scope)}
          {...(scope === 'groups' && groups)}
        />
      ))}
      <TextInput
        label={t.sample}
        description={t.sampleHint}
        inputMode="decimal"
        {...form.getInputProps('sample')}
      />
    </>
  )
}
