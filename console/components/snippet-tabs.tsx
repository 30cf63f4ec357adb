import { Button, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { gatewayAddress } from '../api/base-path.ts'
import { modelsQuery } from '../api/models.ts'
import { CopyButton } from './copy-button.tsx'
import { useSignedInAccount } from './session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { snippetsOf } from './snippets.ts'
import classes from './snippet-tabs.module.css'

/** Examples of calls with a key. */
export function SnippetTabs({
  limitedTo,
  insertedKey,
  onInsert,
}: {
  /** The models that the key is limited to; empty means all. */
  readonly limitedTo: readonly string[]
  readonly insertedKey: string | undefined
  /** Called to insert the key into the examples; absent if the key is not available. */
  readonly onInsert?: () => void
}) {
  const { keys, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { data: models } = useQuery(modelsQuery(profile.id))
  const callable = models?.filter(({ name }) => limitedTo.length === 0 || limitedTo.includes(name))
  const chat = callable?.find(({ endpoints }) => endpoints.includes('chat'))
  const model = chat?.name ?? limitedTo[0]
  if (model === undefined) return models ? <p>{keys.noModel}</p> : null
  const snippets = snippetsOf({ origin: gatewayAddress(), model, key: insertedKey })
  return (
    <Tabs defaultValue="curl" classNames={{ list: classes['list'] }}>
      <Tabs.List aria-label={keys.snippets}>
        {snippets.map(({ name }) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {snippets.map(({ name, code }) => (
        <Tabs.Panel key={name} value={name}>
          <pre className={classes['code']} tabIndex={0}>
            <code>{code}</code>
          </pre>
          <div className={classes['actions']}>
            <CopyButton label={common.copy} text={code} />
            {onInsert && (
              <Button variant="default" disabled={insertedKey !== undefined} onClick={onInsert}>
                {keys.insert}
              </Button>
            )}
          </div>
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
