import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { LinkedIdentity } from '../../api/account.ts'
import { type ManagedUser, unlinkUserIdentity, userIdentitiesQuery } from '../../api/users.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** The identities at identity providers with which a user can sign in. */
export function UserIdentities({ user }: { readonly user: ManagedUser }) {
  const { users, account, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const query = userIdentitiesQuery(profile.id, user.id)
  const { data: identities = [] } = useQuery(query)
  const [toUnlink, setToUnlink] = useState<LinkedIdentity>()
  const columns: readonly Column<LinkedIdentity>[] = [
    {
      key: 'provider',
      label: users.provider,
      phone: 'title',
      cell: ({ provider, issuer }) => provider || issuer,
    },
    { key: 'subject', label: users.subject, cell: ({ subject }) => subject },
    { key: 'since', label: users.since, cell: ({ created_time }) => <TimeText at={created_time} /> },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (identity) => (
        <Button variant="default" size="xs" onClick={() => setToUnlink(identity)}>
          {account.unlink}
        </Button>
      ),
    },
  ]
  return (
    <section aria-label={users.identities}>
      <h2>{users.identities}</h2>
      {identities.length === 0 ? (
        <p>{users.noIdentities}</p>
      ) : (
        <DataTable
          label={users.identities}
          columns={columns}
          rows={identities}
          keyOf={({ issuer, subject }) => `${issuer} ${subject}`}
        />
      )}
      <ConfirmDialog
        opened={toUnlink !== undefined}
        title={account.unlink}
        text={users.unlinkText(user.username)}
        label={account.unlink}
        onConfirm={async () => {
          if (toUnlink) await unlinkUserIdentity(user.id, toUnlink)
          await client.invalidateQueries(query)
        }}
        onClose={() => setToUnlink(undefined)}
      />
    </section>
  )
}
