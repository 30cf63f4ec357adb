import { Button, Divider, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { identityProviderPath, signInMethodsQuery } from '../api/account.ts'
import { useTexts } from '../locales/use-texts.tsx'

/** Links that sign in at identity providers and return to a page of the console, in another tab if this page must stay. */
export function ProviderLinks({
  next,
  isInOtherTab = false,
}: {
  readonly next: string
  readonly isInOtherTab?: boolean
}) {
  const { login } = useTexts()
  const { data: status } = useQuery(signInMethodsQuery)
  if (!status || status.oidc_providers.length === 0) return null
  return (
    <Stack gap="sm" my="md">
      <Divider label={login.or} />
      {status.oidc_providers.map((name) => (
        <Button
          key={name}
          component="a"
          variant="default"
          href={identityProviderPath(name, next)}
          {...(isInOtherTab && { target: '_blank' })}
        >
          {login.signInWith(name)}
        </Button>
      ))}
      {isInOtherTab && <small>{login.inOtherTab}</small>}
    </Stack>
  )
}
