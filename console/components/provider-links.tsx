import { Button, Divider, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { identityProviderPath, signInMethodsQuery } from '../../api/account.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** Links that sign in at identity providers and return to a page of the console. */
export function ProviderLinks({ next }: { readonly next: string }) {
  const { login } = useTexts()
  const { data: status } = useQuery(signInMethodsQuery)
  if (!status || status.oidc_providers.length === 0) return null
  return (
    <Stack gap="sm" my="md">
      <Divider label={login.or} />
      {status.oidc_providers.map((name) => (
        <Button key={name} component="a" variant="default" href={identityProviderPath(name, next)}>
          {login.signInWith(name)}
        </Button>
      ))}
    </Stack>
  )
}
