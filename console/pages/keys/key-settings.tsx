import { Button, Group } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, changeKey, isLimitedFor } from '../../api/keys.ts'
import { EditConflict } from '../../components/edit-conflict.tsx'
import { differencesOf } from '../../components/differences.ts'
import { LeaveGuard } from '../../components/leave-guard.tsx'
import { say } from '../../components/notify.tsx'
import { Refusal } from '../../components/refusal.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useVersion } from '../../components/use-version.ts'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { DeleteKeyDialog } from './delete-key-dialog.tsx'
import { KeyFieldInputs } from './key-fields.tsx'
import { keepFocus } from '../../components/keep-focus.ts'
import { keyFieldsOf, placeAtField, type TypedKey, typedKey, useKeyForm } from './key-form.ts'
import classes from './key-settings.module.css'
import { useKeyChanges } from './use-key-changes.ts'

/** The editable fields of a key. */
export function KeySettings({ apiKey }: { readonly apiKey: ApiKey }) {
  const { common, keys } = useTexts()
  const { display, profile } = useSignedIn()
  const isLimited = isLimitedFor(profile.role, apiKey)
  const { remove, reload } = useKeyChanges()
  const navigate = useNavigate()
  const [isDeleting, setIsDeleting] = useState(false)
  const form = useKeyForm(apiKey)
  const { version, present, continueFrom, isOutdated, decideLater } = useVersion<ApiKey>(apiKey.version)
  const begin = (from: ApiKey): void => {
    form.setValues(typedKey(from, display))
    form.resetDirty(typedKey(from, display))
    continueFrom(from.version)
  }
  const saving = useAction(async (typed: TypedKey, basedOn: string | undefined, from: ApiKey | undefined) => {
    const { remain_quota: left, ...fields } = keyFieldsOf(typed, display, apiKey, from ?? apiKey)
    // Each call changes the remaining quota, so that it is only sent where it was typed.
    const isTyped = form.isDirty('limit') || form.isDirty('isUnlimited')
    try {
      begin(
        await changeKey(apiKey.id, { ...fields, ...(isTyped && { remain_quota: left }), version: basedOn }),
      )
      await reload()
      say(common.saved)
    } catch (error) {
      if (!isOutdated(error) && !placeAtField(error, form)) throw error
    }
  })
  return (
    <form
      noValidate
      className={classes['form']}
      onSubmit={form.onSubmit((typed) => void saving.run(typed, version, undefined))}
    >
      {isLimited && <p>{keys.operatorLimits}</p>}
      <KeyFieldInputs form={form} apiKey={apiKey} limits={isLimited ? (apiKey.operator_limits ?? {}) : {}} />
      <Refusal error={saving.error} />
      <Group mt="lg" gap="sm">
        <Button type="submit" onMouseDown={keepFocus} loading={saving.isRunning} disabled={!form.isDirty()}>
          {common.saveChanges}
        </Button>
        <Button variant="default" onClick={() => setIsDeleting(true)}>
          {common.delete}
        </Button>
      </Group>
      <DeleteKeyDialog
        apiKey={isDeleting ? apiKey : undefined}
        onDelete={async (key) => {
          await remove(key)
          await navigate({ to: '/keys', ignoreBlocker: true })
        }}
        onClose={() => setIsDeleting(false)}
      />
      <LeaveGuard isChanged={form.isDirty()} />
      <EditConflict
        differences={present && differencesOf(keyLabels(keys), form.values, typedKey(present, display))}
        onTake={() => {
          if (present) begin(present)
          void reload()
        }}
        onOverwrite={() => {
          decideLater()
          void saving.run(form.values, present?.version, present)
        }}
        onClose={decideLater}
      />
    </form>
  )
}

function keyLabels(keys: Texts['keys']) {
  return {
    name: keys.name,
    expiry: keys.expires,
    models: keys.models,
    group: keys.group,
    addresses: keys.addresses,
    budget: keys.budget,
    budget_period: keys.budgetPeriod,
    ...keys.rateLimits,
    ...keys.texts,
  }
}
