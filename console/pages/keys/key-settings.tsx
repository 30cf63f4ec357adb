import { Button, Group } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, changeKey, isLimitedByOperator } from '../../api/keys.ts'
import type { ManagedUser } from '../../api/users.ts'
import { useContentLabels, useContentWords } from '../../components/content-inputs.tsx'
import { useLimitLabels, useLimitWords } from '../../components/limit-inputs.tsx'
import { ConfirmLeave } from '../../components/confirm-leave.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { DeleteKeyDialog } from './delete-key-dialog.tsx'
import { KeyFieldInputs } from './key-fields.tsx'
import { keepFocus } from '../../components/keep-focus.ts'
import { showErrorAtField, useKeyForm } from './key-form.ts'
import { isPreset, keyFieldsOf, type KeyFormValues, keyFormValues } from './key-form-values.ts'
import classes from './key-settings.module.css'
import { RotateKeyDialog } from './rotate-key-dialog.tsx'
import { useKeyChanges } from '../../components/use-key-changes.ts'

const ENABLED = 1

/** The editable fields of a key. `owner` is its user, if that is another one. */
export function KeySettings({
  apiKey,
  owner,
}: {
  readonly apiKey: ApiKey
  readonly owner: ManagedUser | undefined
}) {
  const { common, guards, keys, tools } = useTexts()
  const { display, profile } = useSignedInAccount()
  const limitLabels = useLimitLabels()
  const contentLabels = useContentLabels()
  const words = { ...useLimitWords(), ...useContentWords() }
  const { time } = useFormatters()
  const isLimited = !owner && isLimitedByOperator(profile.role, apiKey)
  const { remove, reload, turn } = useKeyChanges(owner?.id)
  const navigate = useNavigate()
  const [isDeleting, setIsDeleting] = useState(false)
  const [isRotating, setIsRotating] = useState(false)
  const isEnabled = apiKey.status === ENABLED
  const form = useKeyForm(apiKey)
  const edit = useMergedEdit<KeyFormValues, ApiKey>({
    form,
    object: apiKey,
    typedOf: (key) => keyFormValues(key, display),
    labels: {
      ...keyLabels(keys),
      ...limitLabels,
      ...contentLabels,
      guards: guards.title,
      toolsets: tools.toolsets,
    },
    words: {
      ...words,
      expiry: (expiry) => (isPreset(expiry) ? keys.expiry[expiry] : time(Number(expiry))),
      group: { '': keys.ownGroup },
    },
    save(typed, version, saved) {
      const { remain_quota: left, ...fields } = keyFieldsOf(typed, display, saved)
      // Calls change the remaining quota all the time, so it is only sent if the user typed it.
      const isTyped = form.isDirty('limit') || form.isDirty('isUnlimited')
      const changed = changedFields(fields, keyFieldsOf(keyFormValues(saved, display), display, saved))
      const change = { ...changed, ...(isTyped && { remain_quota: left }), version }
      return changeKey(apiKey.id, change, owner?.id)
    },
    reload,
    saved: () => common.saved,
    showAtField: (error) => showErrorAtField(error, form),
  })
  return (
    <form noValidate className={classes['form']} onSubmit={form.onSubmit(edit.save)}>
      {isLimited && <p>{keys.operatorLimits}</p>}
      <KeyFieldInputs form={form} apiKey={apiKey} limits={isLimited ? (apiKey.operator_limits ?? {}) : {}} />
      <RefusalMessage error={edit.error} />
      <Group mt="lg" gap="sm">
        <Button type="submit" onMouseDown={keepFocus} loading={edit.isSaving} disabled={!form.isDirty()}>
          {common.saveChanges}
        </Button>
        <Button variant="default" onClick={() => void turn(apiKey, !isEnabled)}>
          {isEnabled ? common.disable : common.enable}
        </Button>
        <Button variant="default" onClick={() => setIsRotating(true)}>
          {keys.rotate}
        </Button>
        <Button variant="default" onClick={() => setIsDeleting(true)}>
          {common.delete}
        </Button>
      </Group>
      <RotateKeyDialog
        apiKey={isRotating ? apiKey : undefined}
        owner={owner}
        onClose={() => setIsRotating(false)}
      />
      <DeleteKeyDialog
        apiKey={isDeleting ? apiKey : undefined}
        onDelete={async (key) => {
          await remove(key)
          await navigate({ to: owner ? '/user-keys' : '/keys', ignoreBlocker: true })
        }}
        onClose={() => setIsDeleting(false)}
      />
      <ConfirmLeave isChanged={form.isDirty()} />
      {edit.conflict}
    </form>
  )
}

function keyLabels(keys: Texts['keys']) {
  return {
    limit: keys.limit,
    isUnlimited: keys.unlimitedSwitch,
    expiry: keys.expires,
    models: keys.models,
    group: keys.group,
    addresses: keys.addresses,
    ...keys.texts,
  }
}

/** The fields that differ, so that an unchanged limit does not become the operator's. */
function changedFields<Fields extends object>(fields: Fields, before: Fields): Partial<Fields> {
  const same = (name: string): boolean =>
    JSON.stringify(fields[name as keyof Fields]) === JSON.stringify(before[name as keyof Fields])
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !same(name))) as Partial<Fields>
}
