import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'
import { createAccessToken } from '../../api/account.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Creates an access token, and shows it once. */
export function AccessTokenSection() {
  const { account, common } = useTexts()
  const [token, setToken] = useState<string>()
  const [isAsking, setIsAsking] = useState(false)
  return (
    <FormSection title={account.accessToken} text={account.accessTokenHint}>
      {token === undefined ? (
        <Button variant="default" style={{ alignSelf: 'start' }} onClick={() => setIsAsking(true)}>
          {account.createToken}
        </Button>
      ) : (
        <Group align="end" gap="sm" wrap="nowrap">
          <TextInput
            flex={1}
            label={account.accessToken}
            description={account.tokenShownOnce}
            readOnly
            value={token}
          />
          <CopyButton label={common.copy} text={token} />
        </Group>
      )}
      <ConfirmDialog
        opened={isAsking}
        title={account.createToken}
        text={account.accessTokenHint}
        label={account.createToken}
        onConfirm={async () => setToken(await createAccessToken())}
        onClose={() => setIsAsking(false)}
      />
    </FormSection>
  )
}
