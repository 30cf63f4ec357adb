import { Modal, Tabs } from '@mantine/core'
import { gatewayAddress } from '../../api/base-path.ts'
import { callPath } from '../../api/playground.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { codeSamples } from './code-samples.ts'
import { isConversationProtocol } from './answer.ts'
import classes from './exchange-view.module.css'
import type { SentPlaygroundCall } from './use-conversation.ts'

/** Shows example programs that send the same request as the playground. */
export function CodeDialog({
  opened,
  onClose,
  call: { model, protocol, isStream, bodyOf },
}: {
  readonly opened: boolean
  readonly onClose: () => void
  readonly call: SentPlaygroundCall
}) {
  const { playground, common } = useTexts()
  const samples = opened
    ? codeSamples({
        origin: gatewayAddress(),
        path: `/${protocol === 'gemini' ? 'v1beta' : 'v1'}/${callPath({ protocol, model, isStream })}`,
        bodies: {
          curl: bodyOf({ model, protocol }),
          chat: bodyOf({ model, protocol: 'chat' }),
          messages: bodyOf({ model, protocol: 'messages' }),
        },
        isConversation: isConversationProtocol(protocol),
      })
    : []
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={playground.viewCode}
      size="xl"
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <Tabs defaultValue="curl">
        <Tabs.List aria-label={playground.viewCode}>
          {samples.map(({ name }) => (
            <Tabs.Tab key={name} value={name}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {samples.map(({ name, code }) => (
          <Tabs.Panel key={name} value={name}>
            <pre className={classes['code']} tabIndex={0}>
              {code}
            </pre>
            <CopyButton label={playground.copyCode} text={code} isPrimary />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Modal>
  )
}
