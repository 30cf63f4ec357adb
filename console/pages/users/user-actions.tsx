import { Button } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type ManagedUser, manageUser } from '../../api/users.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { showNotice } from '../../components/notify.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { SetPasswordDialog } from './set-password-dialog.tsx'
import { UserKeyDialog } from './user-key-dialog.tsx'
import { useUserChanges } from './use-user-changes.ts'

/** The actions that an administrator may take on a user with a lower role. */
export function UserActions({ user }: { readonly user: ManagedUser }) {
  const { users } = useTexts()
  const navigate = useNavigate()
  const { reload } = useUserChanges()
  const [open, setOpen] = useState<'password' | 'key' | 'delete'>()
  const close = (): void => setOpen(undefined)
  return (
    <>
      <Button variant="default" onClick={() => setOpen('password')}>
        {users.setPassword}
      </Button>
      <Button variant="default" onClick={() => setOpen('key')}>
        {users.createKey}
      </Button>
      <Button variant="default" onClick={() => setOpen('delete')}>
        {users.deleteUser}
      </Button>
      <SetPasswordDialog user={user} opened={open === 'password'} onClose={close} />
      <UserKeyDialog user={user} opened={open === 'key'} onClose={close} />
      <ConfirmDialog
        opened={open === 'delete'}
        title={users.deleteUser}
        text={users.deleteText(user.username)}
        label={users.deleteUser}
        onConfirm={async () => {
          await manageUser(user.id, 'delete')
          showNotice(users.deleted(user.username))
          await navigate({ to: '/users', ignoreBlocker: true })
          await reload()
        }}
        onClose={close}
      />
    </>
  )
}
