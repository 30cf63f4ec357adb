import { Button, Group } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, changeKey, isLimitedByOperator } from '../../api/keys.ts'
import { useContentLabels } from '../../components/content-inputs.tsx'
import { useLimitLabels } from '../../components/limit-inputs.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useMergedEdit } from '../../components/use-merged-edit.tsx'
import { type Texts, useTexts } from '../../locales/use-texts.tsx'
import { DeleteKeyDialog } from './delete-key-dialog.tsx'
import { KeyFieldInputs } from './key-fields.tsx'
import { keepFocus } from '../../components/keep-focus.ts'
import { keyFieldsOf, showErrorAtField, type KeyFormValues, keyFormValues, useKeyForm } from './key-form.ts'
import classes from './key-settings.module.css'
import { useKeyChanges } from './use-key-changes.ts'

/** The editable fields of a key. */
export function KeySettings({ apiKey }: { readonly apiKey: ApiKey }) {
  const { common, guards, keys } = useTexts()
  const { display, profile } = useSignedInAccount()
  const limitLabels = useLimitLabels()
  const contentLabels = useContentLabels()
  const isLimited = isLimitedByOperator(profile.role, apiKey)
  const { remove, reload } = useKeyChanges()
  const navigate = useNavigate()
  const [isDeleting, setIsDeleting] = useState(false)
  const form = useKeyForm(apiKey)
  const edit = useMergedEdit<KeyFormValues, ApiKey>({
    form,
    object: apiKey,
    typedOf: (key) => keyFormValues(key, display),
    labels: { ...keyLabels(keys), ...limitLabels, ...contentLabels, guards: guards.title },
    save(typed, version, over) {
      const { remain_quota: left, ...fields } = keyFieldsOf(typed, display, apiKey, over ?? apiKey)
      // Calls change the remaining quota all the time, so it is only sent if the user typed it.
      const isTyped = form.isDirty('limit') || form.isDirty('isUnlimited')
      return changeKey(apiKey.id, { ...fields, ...(isTyped && { remain_quota: left }), version })
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
      {edit.dialogs}
    </form>
  )
}

function keyLabels(keys: Texts['keys']) {
  return {
    expiry: keys.expires,
    models: keys.models,
    group: keys.group,
    addresses: keys.addresses,
    ...keys.texts,
  }
}
