import { Button, Group, Modal, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { createUserKey, type ManagedUser, userKeysQuery } from '../../api/users.ts'
import { unusedKeyName, useDefaultKeyName } from '../../components/default-key-name.ts'
import { NewKeyField } from '../../components/new-key-field.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { FormActions } from '../../components/form-actions.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

interface Dialog {
  readonly user: ManagedUser
  readonly opened: boolean
  readonly onClose: () => void
}

/** Creates a key for a user, and shows it once. */
export function UserKeyDialog({ user, opened, onClose }: Dialog) {
  const { users, common } = useTexts()
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={users.createKey}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <KeyForm user={user} onClose={onClose} />
    </Modal>
  )
}

function KeyForm({ user, onClose }: Pick<Dialog, 'user' | 'onClose'>) {
  const { users, keys, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const base = useDefaultKeyName()
  const { data: present } = useQuery(userKeysQuery(profile.id, user.id, 1))
  const [typed, setName] = useState<string>()
  const name = typed ?? unusedKeyName(base, new Set(present?.items.map((key) => key.name)))
  const [isChecked, setIsChecked] = useState(false)
  const [secret, setSecret] = useState<string>()
  const isEmpty = name.trim() === ''
  const creating = useAction(async () => {
    setIsChecked(true)
    if (isEmpty) return
    const { key } = await createUserKey(user.id, name.trim())
    setSecret(key)
    await client.invalidateQueries({ queryKey: [profile.id, 'user-keys', user.id] })
  })
  if (secret !== undefined)
    return (
      <>
        <NewKeyField secret={secret} hint={users.keyOnce(user.username)} />
        <Group justify="flex-end" mt="lg">
          <Button onClick={onClose}>{keys.done}</Button>
        </Group>
      </>
    )
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void creating.run()
      }}
    >
      <TextInput
        label={users.keyName}
        description={users.keyHint(user.username)}
        data-autofocus
        value={name}
        error={isChecked && isEmpty && common.required}
        onChange={({ currentTarget: { value } }) => setName(value)}
      />
      <RefusalMessage error={creating.error} />
      <FormActions label={users.createKey} isRunning={creating.isRunning} onCancel={onClose} />
    </form>
  )
}
