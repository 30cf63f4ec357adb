import { Button, Group } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, changeKey } from '../../api/keys.ts'
import { parseMoney } from '../../parts/money.ts'
import { say } from '../../parts/notify.tsx'
import { Refusal } from '../../parts/refusal.tsx'
import { useSignedIn } from '../../parts/session.tsx'
import { useAction } from '../../parts/use-action.ts'
import { useTexts } from '../../texts/use-texts.tsx'
import { placeAtField } from './create-key-dialog.tsx'
import { DeleteKeyDialog } from './delete-key-dialog.tsx'
import { KeyFieldInputs } from './key-fields.tsx'
import { keepFocus } from '../../parts/keep-focus.ts'
import { keyFieldsOf, type TypedKey, useKeyForm } from './key-form.ts'
import classes from './key-settings.module.css'
import { useKeyChanges } from './use-key-changes.ts'

/** The fields of a key, to change. */
export function KeySettings({ apiKey }: { readonly apiKey: ApiKey }) {
  const { common } = useTexts()
  const { display } = useSignedIn()
  const { remove, reload } = useKeyChanges()
  const navigate = useNavigate()
  const [isDeleting, setIsDeleting] = useState(false)
  const form = useKeyForm(apiKey)
  const saving = useAction(async (typed: TypedKey) => {
    const limit = parseMoney(typed.limit, display) ?? apiKey.remain_quota
    try {
      await changeKey(apiKey.id, keyFieldsOf(typed, limit, apiKey))
      await reload()
      form.resetDirty()
      say(common.saved)
    } catch (error) {
      if (!placeAtField(error, form)) throw error
    }
  })
  return (
    <form noValidate className={classes['form']} onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
      <KeyFieldInputs form={form} {...(apiKey.expired_time > 0 && { keptExpiry: apiKey.expired_time })} />
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
          await navigate({ to: '/keys' })
        }}
        onClose={() => setIsDeleting(false)}
      />
    </form>
  )
}
