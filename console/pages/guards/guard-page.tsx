import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { type ReactNode, useRef } from 'react'
import { addGuard, changeGuard, type Guard, type GuardFields, guardsQuery } from '../../api/guards.ts'
import { focusInvalid } from '../../components/focus-invalid.ts'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useAction } from '../../components/use-action.ts'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import {
  type GuardForm,
  guardFieldsOf,
  showErrorAtField,
  type GuardFormValues,
  guardFormValues,
  useGuardForm,
} from './guard-form.ts'
import type { MatchFieldValues } from './match-forms.ts'
import { GuardInputs } from './guard-inputs.tsx'
import { ManagedGuard } from './managed-guard.tsx'
import { TryGuardsOnText } from './try-guards-on-text.tsx'

/** The page for a new guard, which can be tried before it is added. */
export function NewGuard() {
  const { guards: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const navigate = useNavigate()
  const form = useGuardForm(undefined)
  const element = useRef<HTMLFormElement>(null)
  const saving = useAction(async (typed: GuardFormValues) => {
    try {
      const { name } = await addGuard(guardFieldsOf(typed))
      await client.invalidateQueries({ queryKey: [profile.id, 'guards'] })
      showNotice(t.saved(name))
      return navigate({ to: '/guards/$name', params: { name }, ignoreBlocker: true })
    } catch (error) {
      if (!showErrorAtField(error, form)) throw error
      focusInvalid(element.current)
    }
  })
  return (
    <>
      <PageHead title={t.add} above={<Link to="/guards">{t.back}</Link>} />
      <form
        ref={element}
        noValidate
        onSubmit={form.onSubmit(
          (typed) => void saving.run(typed),
          () => focusInvalid(element.current),
        )}
      >
        <GuardInputs form={form} isNew />
        <ConfirmLeave isChanged={form.isDirty()} />
        <RefusalMessage error={saving.error} />
        <Group gap="sm">
          <Button type="submit" loading={saving.isRunning}>
            {t.save}
          </Button>
          <Button variant="subtle" component={Link} to="/guards">
            {common.cancel}
          </Button>
        </Group>
      </form>
      <TryGuardsOnText given={() => draftOf(form, element.current)} />
    </>
  )
}

/** The page of a guard: its fields, and what it would do with a text. */
export function GuardPage() {
  const { name = '' } = useParams({ strict: false })
  const { guards: t } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult query={useQuery(guardsQuery(profile.id))} rows={8}>
      {(all) => {
        const guard = all.find((one) => one.name === name)
        if (!guard) return <ObjectNotFound text={t.gone} to="/guards" label={t.back} />
        return guard.managed ? (
          <>
            <GuardHead guard={guard} />
            <ManagedGuard guard={guard} />
            <TryGuardsOnText given={() => ({ guards: [guard.name] })} />
          </>
        ) : (
          <GuardFieldsForm key={guard.name} guard={guard} />
        )
      }}
    </QueryResult>
  )
}

function GuardHead({ guard: { name, mode } }: { readonly guard: Guard }): ReactNode {
  const { guards: t } = useTexts()
  return (
    <PageHead
      title={name}
      above={<Link to="/guards">{t.back}</Link>}
      beside={<StateMark tone={mode === 'enforce' ? 'ok' : 'off'} word={t.modes[mode]} />}
    />
  )
}

function GuardFieldsForm({ guard }: { readonly guard: Guard }) {
  const { guards: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const form = useGuardForm(guard)
  const element = useRef<HTMLFormElement>(null)
  const edit = useMergedEdit<GuardFormValues, Guard>({
    form,
    object: guard,
    typedOf: guardFormValues,
    labels: labelsOf(t),
    words: {
      do: t.actions,
      mode: t.modes,
      where: t.places,
      kind: t.kinds,
      values: (values) => matchText(values, t),
      on_failure: t.failures,
    },
    save: (typed, version) => changeGuard({ ...guardFieldsOf(typed), version }),
    reload: () => client.invalidateQueries({ queryKey: [profile.id, 'guards'] }),
    saved: ({ name }) => t.saved(name),
    showAtField(error) {
      const isShown = showErrorAtField(error, form)
      if (isShown) focusInvalid(element.current)
      return isShown
    },
  })
  return (
    <>
      <GuardHead guard={guard} />
      <form ref={element} noValidate onSubmit={form.onSubmit(edit.save, () => focusInvalid(element.current))}>
        <GuardInputs form={form} isNew={false} />
        <RefusalMessage error={edit.error} />
        <Button type="submit" loading={edit.isSaving} disabled={!form.isDirty()}>
          {common.saveChanges}
        </Button>
        <ConfirmLeave isChanged={form.isDirty()} />
        {edit.conflict}
      </form>
      <TryGuardsOnText given={() => draftOf(form, element.current)} />
    </>
  )
}

const DRAFT = 'draft'

/**
 * The guard with the typed values, and a placeholder if it has no name; undefined if the values are invalid.
 */
function draftOf(
  form: GuardForm,
  element: HTMLFormElement | null,
): { readonly guard: GuardFields } | undefined {
  const { errors } = form.validate()
  const isNameless = form.values.name.trim() === ''
  if (isNameless) form.clearFieldError('name')
  if (Object.keys(errors).some((field) => field !== 'name' || !isNameless)) {
    focusInvalid(element)
    return undefined
  }
  return { guard: { ...guardFieldsOf(form.values), ...(isNameless && { name: DRAFT }) } }
}

/** The typed fields of a match, with their labels. */
function matchText(values: MatchFieldValues, t: Texts['guards']): string {
  const labels: Readonly<Record<string, string>> = t.matchFields
  const words: Readonly<Record<string, string>> = t.pii
  return Object.entries(values)
    .map(([name, typed]) => {
      const text = Array.isArray(typed) ? typed.map((choice) => words[choice] ?? choice).join(', ') : typed
      return `${labels[name] ?? name}: ${text}`
    })
    .join('; ')
}

function labelsOf(t: Texts['guards']): Readonly<Record<keyof GuardFormValues, string>> {
  return {
    name: t.name,
    do: t.do,
    mode: t.mode,
    where: t.where,
    kind: t.kind,
    values: t.match,
    json: t.json,
    with: t.with,
    ...t.scopeNames,
    sample: t.sample,
    timeout: t.timeout,
    on_failure: t.onFailure,
    charge: t.charge,
    most_delay: t.mostDelay,
  }
}
