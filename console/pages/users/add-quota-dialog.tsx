import { Button, Group, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import { addQuota, type ManagedUser } from '../../api/users.ts'
import { keepFocus } from '../../components/keep-focus.ts'
import { moneyUnit, parseMoney } from '../../components/money.ts'
import { say } from '../../components/notify.tsx'
import { Refusal } from '../../components/refusal.tsx'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { useUserChanges } from './use-user-changes.ts'

/** Adds money to a user's quota; shows the amounts before and after. */
export function AddQuotaDialog({
  user,
  onClose,
}: {
  readonly user: ManagedUser | undefined
  readonly onClose: () => void
}) {
  const { users, common } = useTexts()
  return (
    <Modal
      opened={user !== undefined}
      onClose={onClose}
      title={users.addQuota}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {user && <AmountForm user={user} onClose={onClose} />}
    </Modal>
  )
}

function AmountForm({ user, onClose }: { readonly user: ManagedUser; readonly onClose: () => void }) {
  const { users, common } = useTexts()
  const { display } = useSignedIn()
  const { money } = useFormats()
  const { reload } = useUserChanges()
  const [text, setText] = useState('')
  const [isChecked, setIsChecked] = useState(false)
  const amount = parseMoney(text, display)
  const isValid = amount !== undefined && amount > 0
  const adding = useAction(async () => {
    setIsChecked(true)
    if (!isValid) return
    await addQuota(user.id, amount)
    await reload()
    say(users.added(money(amount), user.username))
    onClose()
  })
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void adding.run()
      }}
    >
      <p>{user.username}</p>
      <TextInput
        label={users.amount}
        inputMode="decimal"
        data-autofocus
        rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
        rightSectionWidth={60}
        value={text}
        onChange={({ currentTarget: { value } }) => setText(value)}
        onBlur={() => setIsChecked(text !== '')}
        error={isChecked && !isValid ? common.notAnAmount : undefined}
        description={users.beforeAfter(money(user.quota), money(user.quota + (amount ?? 0)))}
      />
      <Refusal error={adding.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" onClick={onClose}>
          {common.cancel}
        </Button>
        <Button type="submit" onMouseDown={keepFocus} loading={adding.isRunning}>
          {users.addQuota}
        </Button>
      </Group>
    </form>
  )
}
