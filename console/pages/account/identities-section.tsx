import { Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import {
  startIdentityLink,
  identitiesQuery,
  type LinkedIdentity,
  sessionsQuery,
  signInMethodsQuery,
  unlinkIdentity,
} from '../../api/account.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { showFailure } from '../../components/notify.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions-section.module.css'

/**
 * The identities at identity providers with which the user can sign in. Shows nothing if there are neither
 * identities nor providers.
 */
export function IdentitiesSection() {
  const texts = useTexts()
  const { account } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const { data: status } = useQuery(signInMethodsQuery)
  const { data: identities = [] } = useQuery(identitiesQuery(profile.id))
  const [toUnlink, setToUnlink] = useState<LinkedIdentity>()
  const linking = useAction(async (provider: string) => {
    try {
      location.assign(await startIdentityLink(provider, '/account'))
    } catch (error) {
      showFailure(error, texts)
    }
  })
  const unlink = async (identity: LinkedIdentity): Promise<void> => {
    await unlinkIdentity(identity)
    await client.invalidateQueries(identitiesQuery(profile.id))
    await client.invalidateQueries(sessionsQuery(profile.id))
  }
  const providers = status?.oidc_providers ?? []
  if (providers.length + identities.length === 0) return null
  return (
    <FormSection title={account.identities} text={account.identitiesHint}>
      {identities.length > 0 && (
        <ul className={classes['sessions']}>
          {identities.map((identity) => (
            <IdentityRow
              key={`${identity.issuer} ${identity.subject}`}
              identity={identity}
              onUnlink={() => setToUnlink(identity)}
            />
          ))}
        </ul>
      )}
      <Group gap="sm">
        {providers.map((name) => (
          <Button
            key={name}
            variant="default"
            loading={linking.isRunning}
            onClick={() => void linking.run(name)}
          >
            {account.linkIdentity(name)}
          </Button>
        ))}
      </Group>
      <ConfirmDialog
        opened={toUnlink !== undefined}
        title={account.unlinkTitle}
        text={account.unlinkText(toUnlink?.provider || (toUnlink?.issuer ?? ''))}
        label={account.unlink}
        onConfirm={() => (toUnlink ? unlink(toUnlink) : Promise.resolve())}
        onClose={() => setToUnlink(undefined)}
      />
    </FormSection>
  )
}

function IdentityRow({
  identity: { provider, issuer, subject, created_time },
  onUnlink,
}: {
  readonly identity: LinkedIdentity
  readonly onUnlink: () => void
}) {
  const { account } = useTexts()
  const { recent } = useFormatters()
  return (
    <li>
      <div>
        <span title={issuer}>{provider || issuer}</span>
        <span data-muted>{`${subject} · ${account.linkedAt(recent(created_time))}`}</span>
      </div>
      <Button variant="default" onClick={onUnlink}>
        {account.unlink}
      </Button>
    </li>
  )
}
