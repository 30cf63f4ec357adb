import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { createKey, type NewKey } from '../../api/keys.ts'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { CreatedKeyDialog } from './created-key-dialog.tsx'
import { KeyFieldInputs } from './key-fields.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { showErrorAtField, useKeyForm } from './key-form.ts'
import { keyFieldsOf, type KeyFormValues } from './key-form-values.ts'
import { useSuggestedKeyName } from './suggested-key-name.ts'

/** Creates a key, then shows it. */
export function CreateKeyDialog({
  opened,
  onClose,
  onDone,
}: {
  readonly opened: boolean
  readonly onClose: () => void
  /** Called after the new key was shown. */
  readonly onDone?: () => void
}) {
  const { keys } = useTexts()
  const [made, setMade] = useState<NewKey & { readonly models: readonly string[] }>()
  return (
    <>
      <FormDialog opened={opened} onClose={onClose} title={keys.create}>
        <CreateKeyForm
          onClose={onClose}
          onMade={(key) => {
            setMade(key)
            onClose()
          }}
        />
      </FormDialog>
      <CreatedKeyDialog
        made={made}
        onDone={() => {
          setMade(undefined)
          onDone?.()
        }}
      />
    </>
  )
}

function CreateKeyForm({
  onClose,
  onMade,
}: {
  readonly onClose: () => void
  readonly onMade: (key: NewKey & { readonly models: readonly string[] }) => void
}) {
  const { keys } = useTexts()
  const { profile, display } = useSignedInAccount()
  const client = useQueryClient()
  const form = useKeyForm(undefined)
  useSuggestedKeyName(form)
  const creating = useAction(async (typed: KeyFormValues) => {
    try {
      const key = await createKey(keyFieldsOf(typed, display, undefined))
      await client.invalidateQueries({ queryKey: [profile.id, 'keys'] })
      onMade({ ...key, models: typed.models })
    } catch (error) {
      if (!showErrorAtField(error, form)) throw error
    }
  })
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void creating.run(typed))}>
      <KeyFieldInputs form={form} />
      <RefusalMessage error={creating.error} />
      <FormActions label={keys.createButton} isRunning={creating.isRunning} onCancel={onClose} />
    </form>
  )
}
