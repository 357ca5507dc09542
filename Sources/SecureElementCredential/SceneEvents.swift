// SPDX-License-Identifier: MIT

import Synchronization

/// Why the system connected a scene of an app that may present credentials.
public enum CredentialSessionWindowSceneEvent: Codable, Hashable, CustomStringConvertible, Sendable {
    /// A reader's field was seen, and this is the default contactless app.
    case readerDetected
    /// The person asked for it with a gesture.
    case presentation

    public var description: String {
        switch self {
        case .readerDetected: "readerDetected"
        case .presentation: "presentation"
        }
    }
}

/// A scene that is told why it was connected.
public protocol CredentialSessionWindowSceneDelegate: AnyObject, Sendable {
    func windowScene(
        _ windowScene: any PresentationContext,
        didReceiveCredentialSessionWindowSceneEvent event: CredentialSessionWindowSceneEvent
    )
}

extension ProgramScene {
    /// What a scene is connected with: what `UIScene.ConnectionOptions` is to an app with windows.
    public struct ConnectionOptions: Sendable {
        private let event: CredentialSessionWindowSceneEvent?

        init(_ event: CredentialSessionWindowSceneEvent?) { self.event = event }

        /// The event that the scene is connected for; nil when it is connected for another reason. Its delegate is not told of
        /// this event again.
        @MainActor public var credentialSessionEvent: CredentialSessionWindowSceneEvent? { event }
    }
}

struct SceneLink: Sendable {
    typealias Connect =
        @Sendable (ProgramScene.ConnectionOptions) async -> (
            scene: any PresentationContext, delegate: any CredentialSessionWindowSceneDelegate
        )

    var context: (any PresentationContext)?
    weak var delegate: (any CredentialSessionWindowSceneDelegate)?
    /// Connects the scene when there is none.
    var connect: Connect?
}

extension CredentialDevice {
    /// Makes this app the default contactless app, whose scene is told of readers and of the person's gesture.
    ///
    /// Nothing is told without the entitlement for it, while a session is active, or while somebody presents.
    public func becomeDefaultContactlessApp(
        scene: any PresentationContext, delegate: any CredentialSessionWindowSceneDelegate
    ) {
        shared.withLock { $0.scene = SceneLink(context: scene, delegate: delegate) }
    }

    /// Makes this app the default contactless app without a scene: the first event connects one, and stands in its options. The
    /// delegate is told of those after it, for as long as the app keeps it.
    public func becomeDefaultContactlessApp(
        connecting connect:
            @escaping @Sendable (_ options: ProgramScene.ConnectionOptions) async -> (
                scene: any PresentationContext, delegate: any CredentialSessionWindowSceneDelegate
            )
    ) {
        shared.withLock { $0.scene = SceneLink(connect: connect) }
    }

    /// The person makes the gesture for the default contactless app.
    public func presentationGesture() async { await sceneEvent(.presentation) }

    func sceneEvent(_ event: CredentialSessionWindowSceneEvent) async {
        let link = shared.withLock { shared -> SceneLink? in
            let isSuppressed = shared.active != nil || shared.ledger.held != nil || shared.isOtherPresenting
            return shared.policy.hasDefaultContactlessAppEntitlement && !isSuppressed ? shared.scene : nil
        }
        guard let link else { return }
        if let context = link.context, let delegate = link.delegate {
            return delegate.windowScene(context, didReceiveCredentialSessionWindowSceneEvent: event)
        }
        guard let connect = link.connect else { return }
        let (scene, delegate) = await connect(ProgramScene.ConnectionOptions(event))
        shared.withLock { $0.scene = SceneLink(context: scene, delegate: delegate, connect: connect) }
    }
}
